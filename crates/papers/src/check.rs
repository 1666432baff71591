//! Checks that every name in `paper.toml` exists, and that figures and measures fit their experiments.

use crate::about::{AT, About, Experiment, Panel};
use crate::curve::Curve;
use crate::error::ContentError;
use crate::measure::{Measure, Needs};

impl About {
    /// Checks that every name exists.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self) -> Result<(), ContentError> {
        if self.variant.is_empty() {
            return Err(ContentError::NoVariant);
        }
        for experiment in &self.experiment {
            self.check_experiment(experiment)?;
        }
        for figure in &self.figure {
            for panel in &figure.panel {
                self.check_panel(panel).map_err(|mistake| ContentError::Panel {
                    figure: figure.id.clone(),
                    panel: panel.title.clone(),
                    source: Box::new(mistake),
                })?;
            }
        }
        for section in &self.section {
            self.variant(&section.variant).ok_or_else(|| ContentError::VariantOfSection {
                section: section.title.clone(),
                variant: section.variant.clone(),
            })?;
            for id in &section.figures {
                self.figure(id).ok_or_else(|| ContentError::FigureOfSection {
                    section: section.title.clone(),
                    figure: id.clone(),
                })?;
            }
        }
        Ok(())
    }

    fn check_experiment(&self, experiment: &Experiment) -> Result<(), ContentError> {
        let id = || experiment.id.clone();
        if experiment.scenario.is_empty() == experiment.cost.is_none() {
            return Err(ContentError::ScenarioOrCost(id()));
        }
        for name in experiment.disciplines.iter().chain(&experiment.beyond) {
            let Some(spec) = self.disciplines.get(name) else {
                return Err(ContentError::UndefinedDiscipline { experiment: id(), discipline: name.clone() });
            };
            if experiment.of.is_none() && spec.contains(AT) {
                let discipline = name.clone();
                return Err(ContentError::DisciplineWithoutPoint { experiment: id(), discipline });
            }
        }
        for variant in experiment.variants.iter().chain(&experiment.few) {
            self.variant(variant).ok_or_else(|| ContentError::UndefinedVariant {
                experiment: id(),
                variant: variant.clone(),
            })?;
        }
        if experiment.variants.first() != self.variant.first().map(|first| &first.id) {
            return Err(ContentError::NotTheFirstVariant(id()));
        }
        Ok(())
    }

    fn check_panel(&self, panel: &Panel) -> Result<(), ContentError> {
        let one = panel.experiments.len() == 1;
        if panel.experiments.is_empty() || !(one || panel.curve.takes_several()) {
            return Err(ContentError::OneExperiment);
        }
        let bars_of_one = one && matches!(panel.curve, Curve::Bars { .. });
        if !(panel.variants.is_empty() || bars_of_one) {
            return Err(ContentError::VariantsWithoutBars);
        }
        let over = matches!(panel.curve, Curve::Over { .. });
        if !panel.formulas.is_empty() && !over {
            return Err(ContentError::FormulasWithoutOver);
        }
        for id in &panel.experiments {
            let experiment = self.experiment(id).expect("families and experiments were found");
            let compared = panel.disciplines.iter().chain(panel.curve.relative_to());
            for discipline in compared {
                if !experiment.disciplines.contains(discipline) {
                    let discipline = discipline.clone();
                    return Err(ContentError::UnknownDiscipline { experiment: id.clone(), discipline });
                }
            }
            if let Some(other) = panel.variants.iter().find(|name| !experiment.variants.contains(name)) {
                return Err(ContentError::UnknownVariant { experiment: id.clone(), variant: other.clone() });
            }
            if over && experiment.of.is_none() {
                return Err(ContentError::NotAPoint(id.clone()));
            }
            panel.curve.measures().into_iter().try_for_each(|measure| measure.check(experiment))?;
        }
        Ok(())
    }
}

impl Measure {
    /// Checks that an experiment has what this measure needs.
    ///
    /// # Errors
    /// The first thing that is missing.
    pub fn check(&self, experiment: &Experiment) -> Result<(), ContentError> {
        let Needs { timing, ideal, .. } = self.needs();
        let (id, measure) = (experiment.id.clone(), self.label());
        if timing && experiment.cost.is_none() {
            return Err(ContentError::NeedsCost { experiment: id, measure });
        }
        if !timing && experiment.cost.is_some() {
            return Err(ContentError::NeedsScenario { experiment: id, measure });
        }
        if ideal && experiment.ideal.is_none_or(|ideal| ideal.bytes_per_s() == 0.0) {
            return Err(ContentError::NoIdeal { experiment: id, measure });
        }
        Ok(())
    }
}
