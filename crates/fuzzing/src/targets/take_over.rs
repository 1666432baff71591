//! Any lines between both sides of a hand-over: each request is refused or fits the state, and no answer lets
//! both sides forward.

use giveway_control::client;
use giveway_control::handover::{
    Earlier, HandOverAnswer, HandOverRequest, Moment, Received, Step, Successor,
};

/// Input: lines. Those that start with `hand-over` are sent to the bridge, the others are answers to the
/// process that takes over, from a bridge that may be hostile.
pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (mut earlier, mut successor) = (Earlier::default(), Successor::default());
    let (mut now, mut given) = (0, false);
    for line in text.lines().take(64) {
        now += 100_000_000;
        if let Some(words) = line.strip_prefix("hand-over") {
            let Ok(request) = HandOverRequest::parse(words) else { continue };
            assert_eq!(HandOverRequest::parse(&request.to_line()["hand-over".len()..]).ok(), Some(request));
            let mut before = earlier.clone();
            let moment = Moment { wall: now, now, drained: line.ends_with(' ') };
            let answer = earlier.request(1, request, moment);
            before.advance(moment);
            assert!(answer.is_ok() || earlier == before, "a refused request changes nothing: {request:?}");
        } else {
            let step = successor.next(now, 1);
            let answer = client::parse(line).ok().and_then(HandOverAnswer::parse);
            let received = match (&step, answer) {
                (Step::Ask(_), Some(answer)) => {
                    given |= answer == HandOverAnswer::Given;
                    Received::Answer(answer)
                }
                (Step::Ask(_), None) => Received::Refused(line.to_owned()),
                (Step::Pause, _) => continue,
                (Step::TakeLocks, _) => Received::Locks(false),
                (Step::Release, _) => {
                    assert!(given, "the bridge has given the link away");
                    Received::Released
                }
                (Step::GiveUp(_) | Step::Done, _) => return,
            };
            successor.received(&step, received);
        }
    }
}
