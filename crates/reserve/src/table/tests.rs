//! Tests of the table of reservations.

use super::*;
use proptest::prelude::*;

fn tuple(flow: u8) -> Tuple {
    Tuple { from: [10, 0, 0, flow], to: [10, 0, 1, 1], from_port: 5004, to_port: 6000, protocol: 17 }
}
fn start(flow: u8, rate: u64, start: u64, finish: u64) -> Message {
    let (sender, number) = ([2, 0, 0, 0, 0, 1], 1);
    Message { kind: Kind::Start, tuple: tuple(flow), rate: Rate::bit(rate), start, finish, sender, number }
}
/// A link with a capacity only: one owner may have all of it.
fn of(capacity: u64, most: usize, lifetime: u64) -> Table {
    Table::new(Limits {
        capacity: Rate::bit(capacity),
        most,
        lifetime,
        least: Rate::bit(1),
        owner_flows: most,
        owner_share: 1_000_000,
        open_share: 1_000_000,
    })
}
/// An owner with a key.
fn keyed(id: u64) -> Owner {
    Owner { id, open: false }
}
/// An owner without a key.
fn open(id: u64) -> Owner {
    Owner { id, open: true }
}
fn end(flow: u8) -> Message {
    Message { kind: Kind::End, ..start(flow, 0, 0, 0) }
}
fn answer(table: &mut Table, message: &Message, owner: u64, now: u64) -> Option<Kind> {
    answer_to(table, message, keyed(owner), now)
}
fn answer_to(table: &mut Table, message: &Message, owner: Owner, now: u64) -> Option<Kind> {
    let sent = table.take(message, owner, now)?;
    assert_eq!(sent.tuple, message.tuple);
    Some(sent.kind)
}

/// From unknown to reserved, active, changed, ended, expired.
#[test]
fn the_life_of_a_reservation() {
    let mut table = of(100, 2, 1000);
    let rate = |table: &Table, now| table.reserved(&tuple(1), now).as_bit();
    assert_eq!(answer(&mut table, &start(1, 60, 10, 50), 1, 0), Some(Kind::Granted));
    assert_eq!([9, 10, 49, 50].map(|now| rate(&table, now)), [0, 60, 60, 0]);
    // Too much beside the old reservation, but it replaces it.
    assert_eq!(answer(&mut table, &start(1, 80, 10, 50), 1, 5), Some(Kind::Granted));
    assert_eq!(answer(&mut table, &start(1, 101, 10, 50), 1, 5), Some(Kind::Refused(Reason::NoRoom)));
    assert_eq!(rate(&table, 20), 80, "the old one stays");
    assert_eq!(answer(&mut table, &end(1), 1, 20), Some(Kind::Granted));
    assert_eq!(rate(&table, 20), 0);
    assert_eq!(answer(&mut table, &end(1), 1, 21), None);
    assert_eq!(answer(&mut table, &start(2, 1, 30, 40), 1, 21), Some(Kind::Granted));
    table.expire(40);
    assert!(table.is_empty());
    let counts =
        Counts { granted: 3, refused: 1, ended: 1, expired: 1, unknown_ends: 1, ..Counts::default() };
    assert_eq!(table.counts(), counts);
}

#[test]
fn contradictions_are_refused_with_the_reason() {
    let mut table = of(100, 2, 1000);
    let refused = |table: &mut Table, message: &Message, owner| match answer(table, message, owner, 20) {
        Some(Kind::Refused(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mut table, &start(1, 0, 20, 50), 1), Reason::NoRate);
    assert_eq!(refused(&mut table, &start(1, 10, 50, 50), 1), Reason::Backwards);
    assert_eq!(refused(&mut table, &start(1, 10, 10, 20), 1), Reason::Over);
    assert_eq!(refused(&mut table, &start(1, u64::MAX, 0, u64::MAX), 1), Reason::NoRoom);
    assert_eq!(answer(&mut table, &start(1, 10, 20, 50), 1, 20), Some(Kind::Granted));
    assert_eq!(refused(&mut table, &start(1, 20, 20, 50), 2), Reason::NotYours);
    assert_eq!(refused(&mut table, &end(1), 2), Reason::NotYours);
    assert_eq!(table.reserved(&tuple(1), 30).as_bit(), 10, "forgers change nothing");
    assert_eq!(answer(&mut table, &start(2, 10, 20, 50), 1, 20), Some(Kind::Granted));
    assert_eq!(refused(&mut table, &start(3, 10, 20, 50), 1), Reason::TableFull);
    let stray = start(4, 10, 20, 50).answer(None);
    assert_eq!((table.take(&stray, keyed(1), 20), table.counts().stray_answers), (None, 1));
}

/// The reservation of a sender that dies ends after a lifetime; a repeated start refreshes it.
#[test]
fn reservations_without_refresh_expire() {
    let mut table = of(100, 10, 1000);
    answer(&mut table, &start(1, 50, 0, 100_000), 1, 0);
    answer(&mut table, &start(2, 50, 0, 100_000), 1, 0);
    answer(&mut table, &start(2, 50, 0, 100_000), 1, 900);
    assert_eq!([1, 2].map(|flow| table.reserved(&tuple(flow), 1000).as_bit()), [0, 50]);
    assert_eq!(answer(&mut table, &start(3, 50, 0, 100_000), 1, 1000), Some(Kind::Granted));
    assert_eq!(table.len(), 2);
}

/// 4,096 requests for tiny rates, each from a different address: first the smallest rate refuses them, then
/// the share of owners without a key.
#[test]
fn forgers_do_not_fill_the_table() {
    let mut table = Table::new(Limits::of(Rate::mbit(10)));
    let of = |flow: u16, rate: Rate| Message {
        tuple: Tuple { from_port: flow, ..tuple(1) },
        rate,
        ..start(1, 0, 0, u64::MAX)
    };
    for flow in 0..4096 {
        let answer = answer_to(&mut table, &of(flow, Rate::bit(1)), open(u64::from(flow)), 0);
        assert_eq!(answer, Some(Kind::Refused(Reason::TooLittle)));
    }
    let mut granted = 0;
    for flow in 0..4096 {
        match answer_to(&mut table, &of(flow, Rate::kbit(8)), open(u64::from(flow)), 0) {
            Some(Kind::Granted) => granted += 1,
            other => assert_eq!(other, Some(Kind::Refused(Reason::OpenFull))),
        }
    }
    // Half of 9.5 Mbit/s in pieces of 8 kbit/s.
    assert_eq!((granted, table.len()), (593, 593));
    // An owner with a key gets the other half, and existing reservations stay.
    assert_eq!(answer_to(&mut table, &of(5000, Rate::mbit(4)), keyed(1), 0), Some(Kind::Granted));
    assert_eq!(
        answer_to(&mut table, &of(0, Rate::kbit(8)), open(0), 1),
        Some(Kind::Granted),
        "it is repeated"
    );
    // Reservations at different times do not share the rate of the link, but they share the table.
    let mut table = Table::new(Limits::of(Rate::mbit(10)));
    let at = |flow: u16| Message {
        start: u64::from(flow) * 10,
        finish: u64::from(flow) * 10 + 10,
        ..of(flow, Rate::mbit(1))
    };
    let granted = (0..4096)
        .filter(|flow| answer_to(&mut table, &at(*flow), open(u64::from(*flow)), 0) == Some(Kind::Granted));
    assert_eq!(granted.count(), 2048, "half of the table");
}

#[test]
fn one_owner_has_a_share_of_the_link_and_of_the_table() {
    let limits = Limits { owner_flows: 2, least: Rate::bit(1), ..Limits::of(Rate::bit(1000)) };
    let mut table = Table::new(Limits { capacity: Rate::bit(1000), ..limits });
    assert_eq!(answer(&mut table, &start(1, 500, 0, 50), 1, 0), Some(Kind::Granted));
    assert_eq!(answer(&mut table, &start(2, 1, 40, 60), 1, 0), Some(Kind::Refused(Reason::Quota)));
    assert_eq!(answer(&mut table, &start(2, 500, 50, 60), 1, 0), Some(Kind::Granted), "at another time");
    assert_eq!(
        answer(&mut table, &start(3, 1, 70, 80), 1, 0),
        Some(Kind::Refused(Reason::Quota)),
        "a third flow"
    );
    assert_eq!(answer(&mut table, &start(2, 400, 50, 60), 1, 0), Some(Kind::Granted), "it is changed");
    assert_eq!(answer(&mut table, &start(3, 500, 0, 50), 2, 0), Some(Kind::Granted), "another owner");
    assert_eq!(answer(&mut table, &start(4, 1, 0, 50), 3, 0), Some(Kind::Refused(Reason::NoRoom)));
}

/// Owners without a key can be forged. An owner with a key takes over the flow, and then owners without a key
/// cannot change it.
#[test]
fn an_owner_with_a_key_takes_over_a_flow() {
    let mut table = of(100, 10, 1000);
    assert_eq!(answer_to(&mut table, &start(1, 10, 0, 50), open(1), 0), Some(Kind::Granted));
    assert_eq!(
        answer_to(&mut table, &start(1, 10, 0, 50), open(2), 0),
        Some(Kind::Refused(Reason::NotYours))
    );
    assert_eq!(answer_to(&mut table, &start(1, 20, 0, 50), keyed(2), 0), Some(Kind::Granted));
    assert_eq!(
        answer_to(&mut table, &start(1, 10, 0, 50), open(2), 0),
        Some(Kind::Refused(Reason::NotYours))
    );
    assert_eq!(answer_to(&mut table, &end(1), open(1), 0), Some(Kind::Refused(Reason::NotYours)));
    assert_eq!(table.reserved(&tuple(1), 1), Rate::bit(20));
}

/// On a slower link, owners without a key are limited to their share of its new capacity.
#[test]
fn a_slower_link_limits_the_share_of_owners_without_a_key() {
    let mut table = of(100, 10, 1000);
    table.limits.open_share = 500_000;
    assert_eq!(answer_to(&mut table, &start(1, 30, 0, 50), open(1), 0), Some(Kind::Granted));
    assert_eq!(answer_to(&mut table, &start(2, 20, 0, 50), open(2), 0), Some(Kind::Granted));
    assert_eq!(answer_to(&mut table, &start(3, 1, 0, 50), open(3), 0), Some(Kind::Refused(Reason::OpenFull)));
    assert_eq!(table.resize(Rate::bit(80), 1), [tuple(2)], "together at most 40");
}

/// Two reservations that do not overlap both have the whole link.
#[test]
fn reservations_that_do_not_overlap() {
    let mut table = of(950, 10, 1 << 40);
    assert_eq!(answer(&mut table, &start(1, 950, 10, 20), 1, 0), Some(Kind::Granted));
    assert_eq!(answer(&mut table, &start(2, 950, 20, 30), 1, 0), Some(Kind::Granted));
    assert_eq!(answer(&mut table, &start(3, 1, 19, 21), 1, 0), Some(Kind::Refused(Reason::NoRoom)));
    assert_eq!(answer(&mut table, &start(3, 950, 30, 40), 1, 0), Some(Kind::Granted));
}

/// A slower link revokes the newest reservations first. A changed reservation keeps its age, and reservations
/// at different times need not fit together.
#[test]
fn a_slower_link_revokes_the_newest() {
    let mut table = of(100, 10, 1000);
    for (flow, rate, from, to) in
        [(2, 40, 0, 50), (1, 30, 0, 50), (3, 30, 0, 50), (4, 90, 50, 60), (2, 35, 0, 50)]
    {
        assert_eq!(answer(&mut table, &start(flow, rate, from, to), 1, 0), Some(Kind::Granted), "{flow}");
    }
    assert_eq!(table.sum(0), Rate::bit(95));
    assert_eq!(table.resize(Rate::bit(90), 1), [tuple(3)]);
    assert_eq!([1, 2, 3].map(|flow| table.reserved(&tuple(flow), 1).as_bit()), [30, 35, 0]);
    assert_eq!(table.get(&tuple(4)).map(|four| (four.rate, four.until)), Some((Rate::bit(90), 60)));
    assert_eq!(answer(&mut table, &start(3, 30, 0, 50), 1, 2), Some(Kind::Refused(Reason::NoRoom)));
    assert_eq!(table.resize(Rate::bit(1000), 2), []);
    assert_eq!(answer(&mut table, &start(3, 30, 0, 50), 1, 2), Some(Kind::Granted));
    assert_eq!((table.counts().revoked, table.capacity(), table.len()), (1, Rate::bit(1000), 4));
}

proptest! {
    /// For any requests, the sum of reservations never exceeds the capacity, and a request that is refused
    /// for lack of rate would exceed it at some time.
    #[test]
    fn reservations_never_exceed_the_capacity(
        asked in prop::collection::vec((0..8u8, 1..60u64, 0..40u64, 1..30u64, 0..4u64, any::<bool>()), 1..60),
    ) {
        let mut table = of(100, 6, 25);
        let mut now = 0;
        for (flow, rate, from, lasts, passes, ends) in asked {
            now += passes;
            let message = if ends { end(flow) } else { start(flow, rate, from, from + lasts) };
            // The sum of all reservations at each time, if all of them are refreshed.
            table.expire(now);
            let sum = |table: &Table, at: u64, but: Option<Tuple>| -> u64 {
                let there = |(tuple, entry): &(&Tuple, &Entry)| {
                    Some(**tuple) != but && entry.start <= at && at < entry.finish
                };
                table.entries.iter().filter(there).map(|(_, entry)| entry.rate).sum()
            };
            let too_much = (from.max(now)..from + lasts).any(|at| sum(&table, at, Some(tuple(flow))) + rate > 100);
            let answer = answer(&mut table, &message, 1, now);
            if answer == Some(Kind::Refused(Reason::NoRoom)) {
                prop_assert!(too_much);
            } else if answer == Some(Kind::Granted) && !ends {
                prop_assert!(!too_much);
            }
            for at in now..now + 80 {
                prop_assert!(sum(&table, at, None) <= 100);
            }
            prop_assert!(table.len() <= 6);
        }
    }
}
