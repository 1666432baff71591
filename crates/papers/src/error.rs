//! The errors of a paper that cannot be read or run.

use std::io;
use std::path::PathBuf;

use giveway_disciplines::SpecError;
use giveway_qdisc::Invalid;

/// The error of a paper that cannot be read or run. Its causes are in `source()`.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// There is neither a shipped paper nor a folder of this name.
    #[error("unknown paper \"{name}\", and no folder of that name has a paper.toml; there are: {known}")]
    Unknown {
        /// The name in question.
        name: String,
        /// The shipped papers.
        known: String,
    },
    /// The paper has no such figure.
    #[error("unknown figure {figure}; there are: {known}")]
    UnknownFigure {
        /// The number in question.
        figure: String,
        /// The figures of the paper.
        known: String,
    },
    /// A file that the paper names is not part of the program.
    #[error("the shipped paper {paper} has no file {file}")]
    NotShipped {
        /// The name of the paper.
        paper: String,
        /// The name of the file.
        file: String,
    },
    /// A file of the paper cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file of the paper is not valid TOML, or has an unknown or missing key.
    #[error("{file}")]
    Syntax {
        /// The paper and the name of the file.
        file: String,
        /// The mistake, with its line.
        source: Box<toml::de::Error>,
    },
    /// Two parts of the paper do not fit each other.
    #[error("{file}")]
    Content {
        /// The paper and the name of the file.
        file: String,
        /// The mistake.
        source: Box<ContentError>,
    },
    /// An experiment cannot be run.
    #[error("{file}, experiment \"{experiment}\", variant \"{variant}\"")]
    Experiment {
        /// The paper and the name of the scenario, or of the file with the experiment.
        file: String,
        /// The identifier of the experiment.
        experiment: String,
        /// The identifier of the variant.
        variant: String,
        /// The mistake.
        source: Box<ContentError>,
    },
}

/// A mistake in the files of a paper.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// A mistake in a figure.
    #[error("figure {figure}")]
    Figure {
        /// The number of the figure.
        figure: String,
        /// The mistake.
        source: Box<ContentError>,
    },
    /// A mistake in a panel of a figure.
    #[error("figure {figure}, panel \"{panel}\"")]
    Panel {
        /// The number of the figure.
        figure: String,
        /// The title of the panel.
        panel: String,
        /// The mistake.
        source: Box<ContentError>,
    },
    /// A mistake in a claim.
    #[error("claim \"{claim}\"")]
    Claim {
        /// The identifier of the claim.
        claim: String,
        /// The mistake.
        source: Box<ContentError>,
    },

    /// The paper has no variant.
    #[error("at least one [[variant]] is needed: verdicts are about the first")]
    NoVariant,
    /// An experiment has neither a scenario nor a cost, or both.
    #[error("experiment \"{0}\" needs a scenario, or a cost such as {{ flows = \"100\", bytes = \"1000\" }}")]
    ScenarioOrCost(String),
    /// An experiment names a discipline that the paper does not define.
    #[error(
        "experiment \"{experiment}\" names the discipline \"{discipline}\", which [disciplines] does not have"
    )]
    UndefinedDiscipline {
        /// The identifier of the experiment.
        experiment: String,
        /// The name of the discipline.
        discipline: String,
    },
    /// An experiment without points compares a discipline whose spec contains the number of a point.
    #[error("experiment \"{experiment}\" has no points, but the discipline \"{discipline}\" contains {{at}}")]
    DisciplineWithoutPoint {
        /// The identifier of the experiment.
        experiment: String,
        /// The name of the discipline.
        discipline: String,
    },
    /// An experiment names a variant that the paper does not define.
    #[error("experiment \"{experiment}\" names the variant \"{variant}\", which does not exist")]
    UndefinedVariant {
        /// The identifier of the experiment.
        experiment: String,
        /// The identifier of the variant.
        variant: String,
    },
    /// The first variant of an experiment is not the variant of the verdicts.
    #[error(
        "the variants of experiment \"{0}\" must begin with the first [[variant]]: verdicts are about it"
    )]
    NotTheFirstVariant(String),
    /// A section names a variant that the paper does not define.
    #[error("section \"{section}\" names the variant \"{variant}\", which does not exist")]
    VariantOfSection {
        /// The title of the section.
        section: String,
        /// The identifier of the variant.
        variant: String,
    },
    /// A section names a figure that the paper does not define.
    #[error("section \"{section}\" names figure {figure}, which does not exist")]
    FigureOfSection {
        /// The title of the section.
        section: String,
        /// The number of the figure.
        figure: String,
    },
    /// A panel has no experiment, or more than its curve can draw.
    #[error("a panel needs one experiment; bars, over and trade may have several")]
    OneExperiment,
    /// A panel has variants, and its curve cannot draw them.
    #[error("only bars of one experiment may have variants")]
    VariantsWithoutBars,
    /// A panel has formulas, and its curve cannot draw them.
    #[error("only curves of the kind over may have formulas")]
    FormulasWithoutOver,
    /// The axis of a panel needs a family, and the experiment does not belong to one.
    #[error("experiment \"{0}\" is not a point of a family, so it has no position on an axis")]
    NotAPoint(String),
    /// Two experiments or families have the same identifier.
    #[error("there are two experiments \"{0}\"")]
    TwoExperiments(String),
    /// A text of an experiment contains the number of a point, and the experiment has no points.
    #[error(
        "experiment \"{experiment}\" has {{at}} in \"{text}\", but no points: write for example \
         [[experiment.point]] with at = 2"
    )]
    NumberWithoutPoints {
        /// The identifier of the experiment.
        experiment: String,
        /// The text.
        text: String,
    },
    /// The number of a point is infinite or not a number.
    #[error("experiment \"{experiment}\": at = {at} is not a position on an axis")]
    NotFinite {
        /// The identifier of the family.
        experiment: String,
        /// The number.
        at: f64,
    },

    /// There is no such experiment, and no family of that name.
    #[error("unknown experiment \"{0}\"")]
    UnknownExperiment(String),
    /// An experiment does not compare this discipline.
    #[error("experiment \"{experiment}\" has no discipline \"{discipline}\"")]
    UnknownDiscipline {
        /// The identifier of the experiment.
        experiment: String,
        /// The name of the discipline.
        discipline: String,
    },
    /// An experiment does not run under this variant.
    #[error("experiment \"{experiment}\" has no variant \"{variant}\"")]
    UnknownVariant {
        /// The identifier of the experiment.
        experiment: String,
        /// The identifier of the variant.
        variant: String,
    },
    /// A measure needs timings, and the experiment runs a scenario.
    #[error("experiment \"{experiment}\" has no cost, which \"{measure}\" needs")]
    NeedsCost {
        /// The identifier of the experiment.
        experiment: String,
        /// The measure in words.
        measure: String,
    },
    /// A measure needs a run, and the experiment only times.
    #[error("experiment \"{experiment}\" has a cost and no scenario, which \"{measure}\" needs")]
    NeedsScenario {
        /// The identifier of the experiment.
        experiment: String,
        /// The measure in words.
        measure: String,
    },
    /// A measure compares with the fair share, and the experiment does not define it.
    #[error(
        "experiment \"{experiment}\" has no ideal, which \"{measure}\" compares with: write for example ideal = \
         \"5 Mbit/s\""
    )]
    NoIdeal {
        /// The identifier of the experiment.
        experiment: String,
        /// The measure in words.
        measure: String,
    },

    /// A number of a cost cannot be read.
    #[error("cost: {key} = \"{text}\" is not a positive whole number")]
    NotPositive {
        /// The key of the number.
        key: &'static str,
        /// The text.
        text: String,
    },
    /// The packets of a cost are longer than a packet can be.
    #[error("cost: a packet cannot have {0} bytes")]
    PacketTooLong(u64),
    /// A discipline cannot be built for the link of a cost.
    #[error("{discipline}")]
    Build {
        /// The name of the discipline.
        discipline: String,
        /// The parameter in question.
        source: Invalid,
    },
    /// The spec of a discipline is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The scenario with the changes of the experiment and of the variant is wrong.
    #[error("{}", .0.join("; "))]
    Scenario(Vec<String>),
    /// A measure or a curve names a source that the scenario does not have.
    #[error("unknown traffic \"{source_name}\"; there are: {known}")]
    UnknownTraffic {
        /// The source, or the beginning of its name with a star.
        source_name: String,
        /// The sources of the scenario.
        known: String,
    },

    /// Two claims have the same identifier.
    #[error("there are two claims \"{0}\"")]
    TwoClaims(String),
    /// A claim is about a figure that the paper does not define.
    #[error("claim \"{claim}\" is about figure {figure}, which does not exist")]
    FigureOfClaim {
        /// The identifier of the claim.
        claim: String,
        /// The number of the figure.
        figure: String,
    },
    /// A claim has neither tests nor a reason against them, or both.
    #[error("a claim needs tests, or not_testable with the reason")]
    TestsOrReason,
    /// A test has no band.
    #[error("a test needs at_least or at_most")]
    NoBand,
    /// A number that needs no run is taken from a run.
    #[error("\"{0}\" needs no experiment and no discipline")]
    NeedsNoRun(String),
    /// A test does not name its experiment.
    #[error("a test names no experiment")]
    NoExperiment,
    /// A test does not name its discipline.
    #[error("a test names no discipline (of)")]
    NoDiscipline,
    /// A test names its experiments in two ways.
    #[error("a test has experiment or across, not both")]
    ExperimentAndAcross,
    /// A test is compared in two ways.
    #[error("a test has over or minus, not both")]
    OverAndMinus,
    /// The value that a test is compared with names its experiments in two ways.
    #[error("over and minus have experiment or across, not both")]
    ExperimentAndAcrossOfOther,
    /// The value that a test is compared with is measured at several points.
    #[error("over or minus names the family \"{0}\": name one of its points, or all of them with across")]
    FamilyOfOther(String),
    /// Numbers of one experiment are to be combined.
    #[error("fold needs across, which names the experiments")]
    FoldWithoutAcross,
    /// Numbers of several experiments are not combined.
    #[error("across needs fold: \"mean\", \"max\", \"min\" or \"slope\"")]
    AcrossWithoutFold,
    /// There is nothing to combine.
    #[error("across names no experiment")]
    EmptyAcross,
    /// A slope needs an axis, and the experiment has no position on one.
    #[error("a slope needs points of a family, and experiment \"{0}\" is not one")]
    SlopeWithoutFamily(String),
    /// All points of a slope have the same position.
    #[error("a slope needs two points or more")]
    SlopeOfOnePoint,
    /// There is no such fact.
    #[error("unknown fact \"{0}\"")]
    UnknownFact(String),
    /// A number that a claim uses is not in `measured.toml`.
    #[error("measured.toml has no \"{0}\"")]
    NotMeasured(String),
}

impl ContentError {
    /// Adds the figure to a mistake.
    pub(crate) fn in_figure(self, figure: &str) -> ContentError {
        ContentError::Figure { figure: figure.to_owned(), source: Box::new(self) }
    }

    /// Adds the claim to a mistake.
    pub(crate) fn in_claim(self, claim: &str) -> ContentError {
        ContentError::Claim { claim: claim.to_owned(), source: Box::new(self) }
    }
}

/// An error and its causes in one line, as the front end prints them.
#[cfg(test)]
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
