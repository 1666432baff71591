//! Checks that every name in `paper.toml` exists, and that figures and measures fit their experiments.

use crate::about::{AT, About, Experiment, Panel};
use crate::curve::Curve;
use crate::measure::{Measure, Needs};

impl About {
    /// Checks that every name exists.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self) -> Result<(), String> {
        if self.variant.is_empty() {
            return Err("at least one [[variant]] is needed: verdicts are about the first".to_owned());
        }
        for experiment in &self.experiment {
            let whom = format!("experiment \"{}\"", experiment.id);
            if experiment.scenario.is_empty() == experiment.cost.is_none() {
                return Err(format!(
                    "{whom} needs a scenario, or a cost such as {{ flows = \"100\", bytes = \"1000\" }}"
                ));
            }
            for name in experiment.disciplines.iter().chain(&experiment.beyond) {
                if !self.disciplines.contains_key(name) {
                    return Err(format!(
                        "{whom} names the discipline \"{name}\", which [disciplines] does not have"
                    ));
                }
                if experiment.of.is_none() && self.disciplines[name].contains(AT) {
                    return Err(format!("{whom} has no points, but the discipline \"{name}\" contains {AT}"));
                }
            }
            for id in experiment.variants.iter().chain(&experiment.few) {
                self.variant(id)
                    .ok_or_else(|| format!("{whom} names the variant \"{id}\", which does not exist"))?;
            }
            if experiment.variants.first().map(String::as_str)
                != self.variant.first().map(|first| first.id.as_str())
            {
                return Err(format!("{whom} must begin with the first variant, which verdicts are about"));
            }
        }
        for figure in &self.figure {
            for panel in &figure.panel {
                self.check_panel(panel)
                    .map_err(|why| format!("figure {}, panel \"{}\": {why}", figure.id, panel.title))?;
            }
        }
        for section in &self.section {
            self.variant(&section.variant).ok_or_else(|| {
                format!("section \"{}\" names the variant \"{}\"", section.title, section.variant)
            })?;
            for id in &section.figures {
                self.figure(id).ok_or_else(|| format!("section \"{}\" names figure {id}", section.title))?;
            }
        }
        Ok(())
    }

    fn check_panel(&self, panel: &Panel) -> Result<(), String> {
        let one = panel.experiments.len() == 1;
        if panel.experiments.is_empty() || !(one || panel.curve.takes_several()) {
            return Err("it needs one experiment; bars, over and trade may have several".to_owned());
        }
        let bars_of_one = one && matches!(panel.curve, Curve::Bars { .. });
        if !(panel.variants.is_empty() || bars_of_one) {
            return Err("variants stand side by side in bars of one experiment".to_owned());
        }
        for id in &panel.experiments {
            let experiment = self.experiment(id).expect("families and experiments were found");
            if let Some(other) = panel.disciplines.iter().find(|name| !experiment.disciplines.contains(name))
            {
                return Err(format!("experiment \"{id}\" has no discipline \"{other}\""));
            }
            if let Some(base) =
                panel.curve.relative_to().filter(|base| !experiment.disciplines.contains(base))
            {
                return Err(format!("experiment \"{id}\" has no discipline \"{base}\" to be relative to"));
            }
            if let Some(other) = panel.variants.iter().find(|name| !experiment.variants.contains(name)) {
                return Err(format!("experiment \"{id}\" has no variant \"{other}\""));
            }
            if !panel.formulas.is_empty() && !matches!(panel.curve, Curve::Over { .. }) {
                return Err("formulas stand beside curves of the kind over".to_owned());
            }
            if matches!(panel.curve, Curve::Over { .. }) && experiment.of.is_none() {
                return Err(format!(
                    "experiment \"{id}\" is no point of a family, so it has no place on an axis"
                ));
            }
            panel.curve.measures().into_iter().try_for_each(|measure| measure.check(experiment))?;
        }
        Ok(())
    }
}

impl Measure {
    /// Checks that an experiment has what it needs.
    ///
    /// # Errors
    /// A sentence on what is missing.
    pub fn check(&self, experiment: &Experiment) -> Result<(), String> {
        let Needs { timing, ideal, .. } = self.needs();
        if timing != experiment.cost.is_some() {
            let what = if timing { "times nothing" } else { "times, and measures nothing else" };
            return Err(format!(
                "experiment \"{}\" {what}: it cannot measure \"{}\"",
                experiment.id,
                self.words()
            ));
        }
        if ideal && experiment.ideal.is_none_or(|ideal| ideal.bytes_per_s() == 0.0) {
            return Err(format!(
                "experiment \"{}\" has no ideal, which \"{}\" compares with: write for example ideal = \"5 Mbit/s\"",
                experiment.id,
                self.words()
            ));
        }
        Ok(())
    }
}
