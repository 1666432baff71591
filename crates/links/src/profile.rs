//! The rate or the delay of a link over time: its description, and its pieces.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use giveway_files::input;
use giveway_qdisc::{Rate, Span, Time};

use crate::error::TraceError;
use crate::models::{Model, Walk};
use crate::piece::Piece;
use crate::quantity::{HIGHEST, Quantity, SHORTEST, check};
use crate::rows::{Format, Rows, Step};

/// The way between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A value stays until the next point.
    Steps,
    /// The value changes linearly to the next point's, in steps of 10 ms. Each step takes the value in its
    /// middle, so that the integral equals the line's.
    Ramp,
}

/// A rate or a delay over time, which has been checked.
#[derive(Clone, Debug)]
pub struct Profile {
    kind: Definition,
    /// True if it starts again at its end.
    repeats: bool,
    /// The mean over the trace.
    mean: u64,
    least: u64,
    most: u64,
    /// The time of its last row; `None` for a model.
    length: Option<Span>,
}

#[derive(Clone, Debug)]
enum Definition {
    Points(Arc<[(Span, u64)]>, Shape),
    File(Arc<Path>, Format),
    /// The content of a file.
    Content(Arc<Path>, Arc<[u8]>, Format),
    Model(Model, u64),
}

/// The longest file that is kept in memory, in bytes: a day at 10 Gbit/s.
const LARGEST: u64 = 1 << 30;

/// The lowest mean rate of a loop. A packet of 64 KiB takes nine minutes at it.
const SLOWEST: Rate = Rate::kbit(1);

/// Length of a step of a ramp.
const STAIR: Span = Span::ms(10);

impl Profile {
    /// Points in order of time, the first at zero.
    ///
    /// # Errors
    /// The number of the wrong point, from 1.
    pub fn points(
        quantity: Quantity,
        shape: Shape,
        points: &[(Span, u64)],
        repeats: bool,
    ) -> Result<Profile, TraceError> {
        let example = match quantity {
            Quantity::Rate => "write for example [[\"0s\", \"50mbit\"], [\"10s\", \"1mbit\"]]",
            Quantity::Delay => "write for example [[\"0s\", \"20ms\"], [\"15s\", \"60ms\"]]",
        };
        if points.is_empty() {
            return Err(TraceError::whole("there are no points", example));
        }
        for (i, (at, value)) in points.iter().enumerate() {
            let number = i as u64 + 1;
            if i == 0 && !at.is_zero() {
                let message = format!("the first point is at {at}, and nothing says what is before");
                return Err(TraceError::at(number, message, "begin with a point at \"0s\""));
            }
            if i > 0 && points[i - 1].0 >= *at {
                let message = format!("the time goes back, from {} to {at}", points[i - 1].0);
                return Err(TraceError::at(number, message, "write points in order of time, each time once"));
            }
            if i > 0 && points[i - 1].0 + SHORTEST > *at {
                let message =
                    format!("the points at {} and {at} are less than {SHORTEST} apart", points[i - 1].0);
                return Err(TraceError::at(number, message, "leave points out"));
            }
            check(quantity, *value).map_err(|(message, help)| TraceError::at(number, message, help))?;
        }
        Profile::checked(Definition::Points(points.into(), shape), quantity, repeats)
    }

    /// A file in mahimahi's format: the rate of a link.
    ///
    /// # Errors
    /// The file cannot be read, or the first line that is wrong.
    pub fn mahimahi(file: &Path, repeats: bool) -> Result<Profile, TraceError> {
        Profile::checked(Definition::File(file.into(), Format::Mahimahi), Quantity::Rate, repeats)
    }

    /// A file of rows of time and rate, or of time and delay.
    ///
    /// # Errors
    /// The file cannot be read, or the first line that is wrong.
    pub fn csv(quantity: Quantity, file: &Path, repeats: bool) -> Result<Profile, TraceError> {
        Profile::checked(Definition::File(file.into(), Format::Csv(quantity)), quantity, repeats)
    }

    /// A model, whose trace depends on `seed`.
    ///
    /// # Errors
    /// A parameter is invalid.
    pub fn model(model: Model, seed: u64) -> Result<Profile, TraceError> {
        model.check()?;
        let (least, most) = model.range();
        let mean = model.mean();
        Ok(Profile { kind: Definition::Model(model, seed), repeats: true, mean, least, most, length: None })
    }

    /// Reads the file into memory, so that the pieces need no file any more. A backend with real time needs
    /// this, since a disk can be late, and since it may have given up the right to open files.
    ///
    /// # Errors
    /// The file cannot be read any more, has changed, or has more than 1 GiB.
    pub fn in_memory(self) -> Result<Profile, TraceError> {
        let Definition::File(path, format) = &self.kind else { return Ok(self) };
        let unread =
            |error: std::io::Error| TraceError::whole(format!("cannot be read: {error}"), "check the file");
        let file = input::open(path).map_err(unread)?;
        if file.metadata().map_err(unread)?.len() > LARGEST {
            let message = "the file has more than 1 GiB, and is kept in memory here";
            return Err(TraceError::whole(message, "write a shorter trace, with loop = true"));
        }
        let mut content = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut content).map_err(unread)?;
        let content: Arc<[u8]> = content.into();
        let quantity = match format {
            Format::Mahimahi => Quantity::Rate,
            Format::Csv(quantity) => *quantity,
        };
        // It may have changed since it was checked.
        Profile::checked(Definition::Content(Arc::clone(path), content, *format), quantity, self.repeats)
    }

    /// Reads all of a trace once, and checks it as a whole.
    fn checked(kind: Definition, quantity: Quantity, repeats: bool) -> Result<Profile, TraceError> {
        let bursts = matches!(
            kind,
            Definition::File(_, Format::Mahimahi) | Definition::Content(_, _, Format::Mahimahi)
        );
        let ramp = matches!(kind, Definition::Points(_, Shape::Ramp));
        // A long ramp has many steps, and its points say the same.
        let mut rows = match &kind {
            Definition::Points(points, _) => Source::Points { points: Arc::clone(points), next: 0 },
            _ => Source::open(&kind)?,
        };
        let (mut length, mut least, mut most, mut sum) = (Span::ZERO, u64::MAX, 0, 0u128);
        let mut last: Option<Step> = None;
        while let Some(row) = rows.next()? {
            if let Some(Step { at, value }) = last {
                let mean = if ramp { value.midpoint(row.value) } else { value };
                sum += u128::from(mean) * u128::from(row.at.as_ps() - at.as_ps());
                least = least.min(value);
                most = most.max(value);
            }
            length = row.at;
            last = Some(row);
        }
        let Some(last) = last else {
            let message = "the file has no row";
            return Err(TraceError::whole(
                message,
                if bursts {
                    "write a line for each packet of 1,500 bytes that may leave, with its time in milliseconds"
                } else {
                    "write a time and a value in each line, such as 0,20mbit"
                },
            ));
        };
        // The last step of a loop is its end, so that its value is never used.
        if !repeats || ramp || length.is_zero() {
            least = least.min(last.value);
            most = most.max(last.value);
        }
        if repeats && length.is_zero() {
            let message = "the loop has no length: its last time is 0";
            let help = "the last time is the length of the loop: write one above 0, or loop = false";
            return Err(TraceError::whole(message, help));
        }
        if repeats && length < Span::ms(1) {
            let message = format!("the loop lasts {length}, less than 1 ms");
            return Err(TraceError::whole(
                message,
                "the last time is the length of the loop: write 1ms or more",
            ));
        }
        let mean = if bursts {
            let bytes = u128::from(crate::rows::OPPORTUNITY) * u128::from(rows.rows());
            let bits = bytes * 8 * 1_000_000_000_000;
            (bits / u128::from(length.as_ps().max(1_000_000_000))).min(u128::from(HIGHEST.as_bit())) as u64
        } else if length.is_zero() {
            last.value
        } else {
            (sum / u128::from(length.as_ps())) as u64
        };
        if bursts {
            (least, most) = (mean, mean);
        }
        // A ramp to 1 bit/s has steps of 0 bit/s.
        if quantity == Quantity::Rate && most <= u64::from(ramp) {
            return Err(TraceError::whole(
                "the rate is 0 everywhere, so that nothing ever leaves",
                "write a rate above 0 in some row",
            ));
        }
        if quantity == Quantity::Rate && repeats && mean < SLOWEST.as_bit() {
            let message = format!("the mean rate of {} is less than {SLOWEST}", Rate::bit(mean));
            return Err(TraceError::whole(message, "a packet would take many rounds: write higher rates"));
        }
        Ok(Profile { kind, repeats, mean: mean.max(1), least, most, length: Some(length) })
    }

    /// True if it offers bytes at instants, and has no rate.
    pub fn bursts(&self) -> bool {
        match &self.kind {
            Definition::Points(..) => false,
            Definition::File(_, format) | Definition::Content(_, _, format) => *format == Format::Mahimahi,
            Definition::Model(model, _) => model.bursts(),
        }
    }

    /// The mean over the trace, at least 1.
    pub fn mean(&self) -> u64 {
        self.mean
    }
    /// The lowest value.
    pub fn least(&self) -> u64 {
        self.least
    }
    /// The highest value.
    pub fn most(&self) -> u64 {
        self.most
    }
    /// The time of the last row, which is the length of a loop; `None` for a model.
    pub fn length(&self) -> Option<Span> {
        self.length
    }
    /// True if it starts again at its end.
    pub fn repeats(&self) -> bool {
        self.repeats
    }

    /// The file that it reads.
    pub fn file(&self) -> Option<&Path> {
        match &self.kind {
            Definition::File(path, _) | Definition::Content(path, ..) => Some(path),
            _ => None,
        }
    }

    /// Its pieces, from the beginning.
    ///
    /// # Panics
    /// If its file cannot be opened any more.
    pub fn course(&self) -> Course {
        let pieces = match &self.kind {
            Definition::Model(model, seed) => Pieces::Model(model.walk(*seed)),
            kind => Pieces::Rows(Box::new(Looped {
                rows: Source::open(kind).unwrap_or_else(|error| panic!("{}: {error}", self.name())),
                kind: kind.clone(),
                bursts: self.bursts(),
                loops: self.repeats.then(|| self.length.expect("only models have no length")),
                base: Span::ZERO,
                at: Span::ZERO,
                value: None,
                next: None,
            })),
        };
        Course { pieces }
    }

    /// The mean from the beginning until a time, at least 1. It is the mean of the trace if there are more
    /// than a million pieces until then.
    ///
    /// # Panics
    /// As [`Profile::course`].
    pub fn mean_until(&self, until: Time) -> u64 {
        const MAX_PIECES: u32 = 1 << 20;
        let mut course = self.course();
        let (mut at, mut sum) = (Time::ZERO, 0u128);
        for _ in 0..MAX_PIECES {
            if at >= until {
                let mean = sum / u128::from(until.as_ps().max(1));
                return if mean > 0 { mean as u64 } else { self.mean };
            }
            let piece = course.next();
            let end = at + piece.length;
            sum += u128::from(piece.value) * u128::from(end.min(until).since(at).as_ps());
            sum += u128::from(piece.burst) * 8 * 1_000_000_000_000;
            at = end;
        }
        self.mean
    }

    /// The amount that the link offers between two times from the beginning: bits for a rate.
    ///
    /// # Panics
    /// As [`Profile::course`].
    pub fn integral(&self, from: Time, until: Time) -> u128 {
        self.integrals(from, [until]).next().expect("one is asked for")
    }

    /// The amount that the link offers from `from` to the first of these times, then from there to the
    /// second, and so on. Times must be in order.
    ///
    /// # Panics
    /// As [`Profile::course`].
    pub fn integrals(
        &self,
        mut from: Time,
        ends: impl IntoIterator<Item = Time>,
    ) -> impl Iterator<Item = u128> {
        let mut course = self.course();
        // The current piece, its beginning and its end, and whether its burst has been counted.
        let mut piece = course.next();
        let (mut at, mut end, mut counted) = (Time::ZERO, Time::ZERO + piece.length, false);
        ends.into_iter().map(move |until| {
            let (mut sum, mut bursts) = (0u128, 0u128);
            while at < until {
                let inside = end.min(until).since(at.max(from));
                sum += u128::from(piece.value) * u128::from(inside.as_ps());
                if at >= from && !counted {
                    bursts += u128::from(piece.burst);
                    counted = true;
                }
                if end > until {
                    break;
                }
                piece = course.next();
                (at, end, counted) = (end, end + piece.length, false);
            }
            from = until;
            sum / 1_000_000_000_000 + bursts * 8
        })
    }

    fn name(&self) -> String {
        self.file().map_or_else(|| "points".to_owned(), |path| path.display().to_string())
    }
}

/// The pieces of a [`Profile`] in order. There is always a next one.
#[derive(Debug)]
pub struct Course {
    pieces: Pieces,
}

#[derive(Debug)]
enum Pieces {
    Rows(Box<Looped>),
    Model(Walk),
}

impl Course {
    /// The next piece.
    ///
    /// # Panics
    /// If a file has changed since it was checked.
    #[allow(clippy::should_implement_trait, reason = "it never ends, so that it is not an iterator")]
    pub fn next(&mut self) -> Piece {
        match &mut self.pieces {
            Pieces::Rows(looped) => looped.next(),
            Pieces::Model(walk) => walk.next(),
        }
    }
}

/// Rows as pieces, once or again and again.
#[derive(Debug)]
struct Looped {
    rows: Source,
    kind: Definition,
    bursts: bool,
    /// Length of a loop.
    loops: Option<Span>,
    /// Start of this round.
    base: Span,
    /// End of the last piece.
    at: Span,
    /// The value of the current row; `None` before the first.
    value: Option<u64>,
    /// The next row, with its time from the beginning of the first round.
    next: Option<Step>,
}

impl Looped {
    fn next(&mut self) -> Piece {
        if self.bursts { self.opportunities() } else { self.values() }
    }

    /// The next row of any round, with its time from the very beginning. `None` after the last round.
    fn row(&mut self) -> Option<Step> {
        loop {
            let row = self.rows.next().unwrap_or_else(|error| panic!("a trace has changed: {error}"));
            match (row, self.loops) {
                (Some(row), Some(length)) if !self.bursts && row.at == length => {}
                (Some(row), _) => return Some(Step { at: self.base + row.at, value: row.value }),
                (None, None) => return None,
                (None, Some(length)) => {
                    self.base += length;
                    self.rows.rewind(&self.kind);
                }
            }
        }
    }

    fn values(&mut self) -> Piece {
        let value = match self.value {
            Some(value) => value,
            None => {
                let first = self.row().expect("a checked trace has rows");
                self.next = self.row();
                first.value
            }
        };
        let Some(next) = self.next else {
            self.value = Some(value);
            return Piece::constant(Piece::EVER, value);
        };
        let rest = next.at - self.at;
        self.at = next.at;
        self.value = Some(next.value);
        self.next = self.row();
        Piece::constant(rest, value)
    }

    /// Silence until the first opportunity, then each opportunity with the silence behind it.
    fn opportunities(&mut self) -> Piece {
        if self.value.is_none() {
            self.value = Some(0);
            self.next = self.row();
            let first = self.next.expect("a checked trace has rows").at;
            if !first.is_zero() {
                self.at = first;
                return Piece::constant(first, 0);
            }
        }
        let Some(first) = self.next else { return Piece::constant(Piece::EVER, 0) };
        let mut burst = first.value;
        loop {
            self.next = self.row();
            match self.next {
                Some(row) if row.at == first.at => burst += row.value,
                Some(row) => {
                    self.at = row.at;
                    return Piece { length: row.at - first.at, value: 0, burst };
                }
                None => return Piece { length: Piece::EVER, value: 0, burst },
            }
        }
    }
}

/// The rows of one round.
#[derive(Debug)]
enum Source {
    Points { points: Arc<[(Span, u64)]>, next: usize },
    Ramp { points: Arc<[(Span, u64)]>, next: usize, at: Span },
    File(Rows<BufReader<File>>, u64),
    Content(Rows<Cursor<Arc<[u8]>>>, u64),
}

impl Source {
    fn open(kind: &Definition) -> Result<Source, TraceError> {
        match kind {
            Definition::Points(points, Shape::Steps) => {
                Ok(Source::Points { points: Arc::clone(points), next: 0 })
            }
            Definition::Points(points, Shape::Ramp) => {
                Ok(Source::Ramp { points: Arc::clone(points), next: 0, at: Span::ZERO })
            }
            Definition::File(path, format) => {
                let file = input::open(path).map_err(|error| {
                    TraceError::whole(
                        format!("cannot be opened: {error}"),
                        "the path is relative to the folder of the scenario",
                    )
                })?;
                Ok(Source::File(Rows::new(BufReader::new(file), *format), 0))
            }
            Definition::Content(_, content, format) => {
                Ok(Source::Content(Rows::new(Cursor::new(Arc::clone(content)), *format), 0))
            }
            Definition::Model(..) => unreachable!("a model has no rows"),
        }
    }

    fn rewind(&mut self, kind: &Definition) {
        match self {
            Source::File(rows, count) => {
                rows.rewind().unwrap_or_else(|error| panic!("a trace cannot be read again: {error}"));
                *count = 0;
            }
            Source::Content(rows, count) => {
                rows.rewind().expect("memory can be read again");
                *count = 0;
            }
            points => *points = Source::open(kind).expect("points are not opened"),
        }
    }

    /// Number of rows so far, of a file.
    fn rows(&self) -> u64 {
        match self {
            Source::File(_, rows) | Source::Content(_, rows) => *rows,
            _ => 0,
        }
    }

    fn next(&mut self) -> Result<Option<Step>, TraceError> {
        match self {
            Source::Points { points, next } => {
                let row = points.get(*next).map(|(at, value)| Step { at: *at, value: *value });
                *next += 1;
                Ok(row)
            }
            Source::Ramp { points, next, at } => {
                let Some((from, low)) = points.get(*next).copied() else { return Ok(None) };
                let Some((until, high)) = points.get(*next + 1).copied() else {
                    *next += 1;
                    return Ok(Some(Step { at: from, value: low }));
                };
                let begin = *at;
                let end = (begin + STAIR).min(until);
                if end == until {
                    *next += 1;
                }
                *at = end;
                Ok(Some(Step { at: begin, value: middle((from, low), (until, high), begin, end) }))
            }
            Source::File(rows, count) => {
                let row = rows.next()?;
                *count += u64::from(row.is_some());
                Ok(row)
            }
            Source::Content(rows, count) => {
                let row = rows.next()?;
                *count += u64::from(row.is_some());
                Ok(row)
            }
        }
    }
}

/// The value of a line between two points in the middle of a part of it, rounded down.
fn middle((from, low): (Span, u64), (until, high): (Span, u64), begin: Span, end: Span) -> u64 {
    let length = 2 * i128::from((until - from).as_ps());
    let passed = i128::from((begin - from).as_ps()) + i128::from((end - from).as_ps());
    let rise = (i128::from(high) - i128::from(low)) * passed;
    (i128::from(low) + rise.div_euclid(length)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(points: &[(u64, u64)], repeats: bool) -> String {
        let points: Vec<_> = points.iter().map(|(ms, rate)| (Span::ms(*ms), *rate)).collect();
        Profile::points(Quantity::Rate, Shape::Steps, &points, repeats).unwrap_err().to_string()
    }

    #[test]
    fn points_that_make_no_trace_are_refused() {
        assert_eq!(error(&[], false), "there are no points");
        assert_eq!(
            error(&[(1, 5)], false),
            "line 1: the first point is at 1ms, and nothing says what is before"
        );
        assert_eq!(error(&[(0, 5), (3, 5), (3, 6)], false), "line 3: the time goes back, from 3ms to 3ms");
        assert_eq!(error(&[(0, 5)], true), "the loop has no length: its last time is 0");
        let zero = "the rate is 0 everywhere, so that nothing ever leaves";
        assert_eq!(error(&[(0, 0), (5, 0)], false), zero);
        assert_eq!(error(&[(0, 0), (5, 9)], true), zero, "the last point of a loop is its end");
        assert_eq!(
            error(&[(0, 10_000_000_000_001)], false),
            "line 1: the rate of 10000000000001bit exceeds 10 Tbit/s"
        );
    }

    #[test]
    fn files_that_make_no_trace_are_refused() {
        let wrong = |text: &str, repeats| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            Profile::mahimahi(file.path(), repeats).unwrap_err().to_string()
        };
        assert_eq!(wrong("", true), "the file has no row");
        assert_eq!(wrong("# nothing\n\n", true), "the file has no row");
        assert_eq!(wrong("0\n0\n", true), "the loop has no length: its last time is 0");
        let missing = Profile::mahimahi(Path::new("/nowhere/x.mahi"), true).unwrap_err().to_string();
        assert!(missing.starts_with("cannot be opened: "), "{missing}");
    }

    #[test]
    fn a_profile_in_memory_needs_no_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "2\n2\n5\n").unwrap();
        let read = Profile::mahimahi(file.path(), true).unwrap();
        let (until, path) = (Time::ms(23), file.path().to_owned());
        let offered = read.integral(Time::ZERO, until);
        let kept = read.clone().in_memory().unwrap();
        drop(file);
        assert!(read.in_memory().unwrap_err().to_string().starts_with("cannot be read: "));
        assert_eq!((kept.integral(Time::ZERO, until), kept.file()), (offered, Some(&*path)));
        assert_eq!((kept.bursts(), kept.repeats(), kept.mean()), (true, true, 7_200_000));
    }

    /// A ramp from 0 to 1 Mbit/s in a second, and back in two: 0.5 Mbit and 1 Mbit.
    #[test]
    fn a_ramp_has_the_integral_of_its_lines() {
        let points = [(Span::ZERO, 0), (Span::s(1), 1_000_000), (Span::s(3), 0)];
        for repeats in [false, true] {
            let profile = Profile::points(Quantity::Rate, Shape::Ramp, &points, repeats).unwrap();
            assert_eq!((profile.mean(), profile.least(), profile.most()), (500_000, 0, 1_000_000));
            let whole = profile.integral(Time::ZERO, Time::s(3));
            assert!((1_499_990..=1_500_000).contains(&whole), "{whole}");
            let half = profile.integral(Time::ZERO, Time::ms(500));
            assert!((124_990..=125_000).contains(&half), "{half}");
        }
        let profile = Profile::points(Quantity::Rate, Shape::Ramp, &points, true).unwrap();
        let (one, three) =
            (profile.integral(Time::ZERO, Time::s(3)), profile.integral(Time::ZERO, Time::s(9)));
        assert_eq!(three, 3 * one, "each round is the same");
    }

    /// Parts of an interval offer what the whole does, in one pass: half a second at 8 bit/s, then at 2,000
    /// bit/s. The edges of the parts are within pieces and between them.
    #[test]
    fn parts_of_an_interval_add_up() {
        let points = [(Span::ZERO, 8), (Span::ms(500), 2_000)];
        let profile = Profile::points(Quantity::Rate, Shape::Steps, &points, false).unwrap();
        let ends = [250, 500, 1_000, 1_000, 3_000].map(Time::ms);
        let parts: Vec<u128> = profile.integrals(Time::ms(125), ends).collect();
        assert_eq!(parts, [1, 2, 1_000, 0, 4_000]);
        assert_eq!(profile.integral(Time::ms(125), Time::s(3)), 5_003);

        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, b"0\n10\n10\n25\n").unwrap();
        let trace = Profile::mahimahi(file.path(), true).unwrap();
        // Opportunities of 1,500 bytes, in each round of 25 ms: at 0, two at 10, and at 25 ms, which is also
        // the first time of the next round. That of the end belongs to the next part.
        let ends = [10, 11, 25, 26, 50].map(Time::ms);
        let parts: Vec<u128> = trace.integrals(Time::ZERO, ends).map(|bits| bits / 12_000).collect();
        assert_eq!(parts, [1, 2, 0, 2, 2]);
        assert_eq!(trace.integral(Time::ZERO, Time::ms(50)), 7 * 12_000);
    }

    /// A day of opportunities, one per 10 ms, is read in pieces: the file is 8 MB, and its course is small.
    #[test]
    fn a_long_trace_is_read_as_time_passes() {
        use std::io::Write;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        {
            let mut out = std::io::BufWriter::new(&mut file);
            (1..=864_000u64).for_each(|n| writeln!(out, "{}", 100 * n).unwrap());
        }
        let profile = Profile::mahimahi(file.path(), true).unwrap();
        assert_eq!(profile.length(), Some(Span::s(86_400)));
        assert_eq!(profile.mean(), 120_000);
        // Nine of the second round; the tenth is at the end of the interval, which is not part of it.
        assert_eq!(profile.integral(Time::ZERO, Time::s(86_401)), 12_000 * 864_009);
        assert!(size_of::<Course>() <= 256);
    }
}
