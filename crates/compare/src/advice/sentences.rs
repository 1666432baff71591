//! The sentences of a recommendation.

use giveway_qdisc::Rate;
use giveway_workload::Direction;

use super::super::mode::word;
use super::super::sides::Sides;
use super::super::situation::Situation;
use super::super::tables::{SMALL_QUANTILES, capital, list, text};
use super::effects::{Effect, Verdict};
use super::overhead::Overhead;
use super::score::{as_good, mean, percent};
use super::target::Target;

/// The number of largest gains that are reported.
const MAX_GAINS: usize = 2;
/// The delay of calls, which are small packets.
const CALLS: &str = "voice_delay_p99_s";

/// The recommendation in a few words.
pub(super) fn summary(name: &str, [up, down]: [Option<Rate>; 2]) -> String {
    match (up, down) {
        (Some(up), Some(down)) if up == down => format!("{name} at {} in both directions", shown(up)),
        (Some(up), Some(down)) => {
            format!("{name} at {} upstream and {} downstream", shown(up), shown(down))
        }
        (Some(up), None) => format!("{name} at {} upstream; change nothing downstream", shown(up)),
        (None, Some(down)) => format!("{name} at {} downstream; change nothing upstream", shown(down)),
        (None, None) => "Change nothing".to_owned(),
    }
}

/// A rate for people, with up to three decimals.
fn shown(rate: Rate) -> String {
    let mbit = format!("{:.3}", rate.as_bit() as f64 / 1e6);
    format!("{} Mbit/s", mbit.trim_end_matches('0').trim_end_matches('.'))
}

/// The gain over all times, and the largest single ones.
pub(super) fn why(effects: &[Effect], scores: &[f64], base: &str) -> String {
    let (typical, interval) = percent(scores);
    let gains = gains(effects);
    let gains = if gains.is_empty() { String::new() } else { format!(": {}", list(&gains)) };
    format!(
        "the times that users wait for are {typical} of those with {base}, as a geometric mean{interval}{gains}."
    )
}

/// The largest gains as clauses.
fn gains(effects: &[Effect]) -> Vec<String> {
    let mut gains: Vec<&Effect> =
        effects.iter().filter(|effect| effect.verdict == Verdict::Better && effect.is_reason).collect();
    gains.sort_by(|a, b| b.gain().total_cmp(&a.gain()));
    gains.into_iter().take(MAX_GAINS).map(Effect::clause).collect()
}

/// The effects with a verdict as clauses.
fn clauses(effects: &[Effect], verdict: Verdict) -> Vec<String> {
    effects.iter().filter(|effect| effect.verdict == verdict).map(Effect::clause).collect()
}

/// The reason against the best setup that was tried.
pub(super) fn rejected(name: &str, base: &str, effects: &[Effect], scores: &[f64], target: Target) -> String {
    let losses = clauses(effects, Verdict::Worse);
    let gains = gains(effects);
    let (typical, interval) = percent(scores);
    match (gains.is_empty(), losses.is_empty()) {
        (false, false) => {
            format!("{name} comes closest: {}. But {}, and a loss disqualifies.", list(&gains), list(&losses))
        }
        (true, false) => format!("{name} comes closest, and {}.", list(&losses)),
        _ => format!(
            "{name} comes closest of what {target} can have: the times that users wait for are {typical} of those with \
             {base}{interval}, and none becomes certainly shorter by 2 %."
        ),
    }
}

/// The reason if no discipline was tried.
pub(super) fn no_candidate(target: Target, base: &str) -> String {
    format!("no discipline of the comparison but {base} can be set up on {target}.")
}

/// The reason against another setup of the recommended discipline.
pub(super) fn not_chosen(sides: Sides, effects: &[Effect], scores: &[f64], chosen: &[f64]) -> String {
    let sides = match sides {
        Sides::Both => "In both directions".to_owned(),
        one => format!("{} only", capital(one.word())),
    };
    let losses = clauses(effects, Verdict::Worse);
    if let [first, ..] = &losses[..] {
        return format!("{sides}: {first}.");
    }
    let (typical, interval) = percent(scores);
    if as_good(chosen, scores) {
        return format!("{sides}: as good within the uncertainty, {typical}{interval}.");
    }
    let word =
        if mean(scores) < mean(chosen) { "better in the mean, but nothing is certain" } else { "less gain" };
    format!("{sides}: {word}, {typical}{interval}.")
}

pub(super) fn rate(shaped: f64) -> String {
    if shaped >= 1.0 {
        return "the rate of the line. A queue in the modem is out of reach of any discipline, so a rate a little below the \
                line's is safer: --shape 95."
            .to_owned();
    }
    format!(
        "{:.0} % of the line's, so that the queue forms here and not in the modem, whose buffer no discipline reaches. All \
         figures come from a simulation with this shaper in front of the line and its buffer. If delays stay long, lower it \
         (--shape); if the line's rate varies, take the lowest.",
        100.0 * shaped
    )
}

/// The overhead of the line in the commands, or the way to it.
pub(super) fn overhead(known: Option<Overhead>, situation: &Situation) -> Option<String> {
    Some(match (known, situation.overhead) {
        (Some(overhead), _) => {
            format!(
                "the commands count what the line adds to each packet ({overhead}); the simulation counts IP bytes."
            )
        }
        (None, Some((guess, why))) => format!(
            "{why}, so the line probably adds bytes to each packet that the shaper does not count; --overhead {guess} puts them \
             into the commands."
        ),
        (None, None) => format!(
            "the line may add bytes to each packet, which the shaper does not count, and small packets then fill the line \
             before the shaper: --overhead {} puts them into the commands (tc-cake(8) has all words).",
            list(&Overhead::EXAMPLES.map(|(word, line)| format!("{word} ({line})"))).replace(" and ", " or ")
        ),
    })
}

/// The effects that are worse within the shaper's share of the rate.
pub(super) fn cost(effects: &[Effect], shaped: f64) -> String {
    let worse = clauses(effects, Verdict::Price);
    let rate = (shaped < 1.0).then(|| {
        format!(
            "{:.0} % of the rate where the shaper is, which these figures include",
            100.0 * (1.0 - shaped)
        )
    });
    match (rate, worse.is_empty()) {
        (Some(rate), true) => format!("{rate}; no other measured time becomes longer."),
        (Some(rate), false) => format!("{rate}: {}.", list(&worse)),
        (None, true) => "no measured time becomes longer.".to_owned(),
        (None, false) => format!("{}.", list(&worse)),
    }
}

pub(super) fn sure(scores: &[f64], equals: &[String], situation: &Situation) -> String {
    let better = scores.iter().filter(|score| **score < 0.0).count();
    let mut text = match scores.len() {
        1 => "one run, so the part of chance is not known; --seeds 5 adds intervals.".to_owned(),
        seeds if situation.resample.is_some() => format!(
            "better in {better} of {seeds} runs. Each run has another draw of stretches of the capture of {}, so the intervals \
             include how much the traffic of this capture varies. Another evening may still differ.",
            situation.resample.unwrap_or_default()
        ),
        seeds => format!(
            "better in {better} of {seeds} runs. Runs differ in when connections begin, not in what they transfer, so the \
             intervals do not say how another evening may differ (--bootstrap varies the traffic as well)."
        ),
    };
    if !equals.is_empty() {
        text.push_str(&format!(" As good in the comparison, within the uncertainty: {}.", list(equals)));
    }
    if let Some(doubt) = situation.doubt() {
        text.push_str(&format!(" {doubt}"));
    }
    text
}

/// The dependence of the gain on think times that the capture leaves open.
pub(super) fn thinks(likely: &[f64], least: &[f64], most: &[f64], base: &str) -> String {
    let [likely, least, most] = [likely, least, most].map(|scores| percent(scores).0);
    format!(
        "the capture leaves some think times of servers open. With the least possible ones the times that users wait for are \
         {least} of those with {base}, with the greatest {most}, and with the likeliest, which all other figures have, {likely}."
    )
}

/// The delays that a measurement before and after should show.
pub(super) fn check(effects: &[Effect]) -> String {
    let small = |direction: Direction| {
        let of = |wanted: &[&str]| {
            effects.iter().find(|one| one.direction == direction && wanted.contains(&one.metric))
        };
        of(&[CALLS]).or_else(|| of(&SMALL_QUANTILES))
    };
    let expected: Vec<String> = [Direction::Up, Direction::Down]
        .into_iter()
        .filter_map(|direction| {
            let effect = small(direction)?;
            let [before, after] = [effect.before, effect.after].map(|value| text(effect.metric, value));
            Some(format!("{} {before} now and {after} with the setup", word(direction)))
        })
        .collect();
    let expected = if expected.is_empty() {
        "The capture has too few small packets to say what to expect.".to_owned()
    } else {
        format!(
            "The simulation expects these delays of slow small packets: {}. Ping shows the sum of both directions, on top of \
             the idle round-trip time.",
            expected.join("; ")
        )
    };
    format!(
        "measure the round-trip time while the line is as busy as in the capture, before and after. {expected} If it stays \
         long, the queue is elsewhere: lower the rate (--shape 85), and look at the Wi-Fi. If pages or transfers became \
         slower, undo it."
    )
}

/// The effect of a reboot.
pub(super) fn reboot(target: Target) -> &'static str {
    match target {
        Target::Openwrt => "the section of sqm stays.",
        Target::Tc => {
            "the settings of tc are lost at a reboot, and when the interface is created again. Put the lines of \"Set up\" into a \
             script that runs whenever the interface comes up (a systemd unit, or if-up.d)."
        }
        Target::Giveway | Target::Any => {
            "the settings are lost at a reboot. Start the command in a systemd unit, which starts it again."
        }
    }
}
