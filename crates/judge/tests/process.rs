//! Candidates in a process of their own. Here a thread stands for the process.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use giveway_evaluate::{Timing, prepare};
use giveway_judge::{BuiltIn, Candidate, Code, Failed, Process, Ran, Rejected, Served, public};
use giveway_scenario::{Backend, Scenario, Trial, discipline};

/// A public cell with a discipline.
fn with_cell(spec: &str, run: impl FnOnce(&Scenario)) {
    let cells = public();
    let prepared = prepare(&cells[0], &[spec.to_owned()], &[1], Timing::Ideal, true).unwrap();
    run(&prepared.scenario);
}

fn ran(scenario: &Scenario, candidate: &dyn Candidate) -> Result<Ran, Rejected> {
    candidate.run(scenario, 1, None, &|_| true).map_err(|failed| match failed {
        Failed::Rejected(rejected) => rejected,
        _ => panic!("it was stopped"),
    })
}

/// A process that does `talk` with its end of the channel.
fn talking(talk: fn(UnixStream) -> io::Result<()>) -> io::Result<UnixStream> {
    let (mine, other) = UnixStream::pair()?;
    std::thread::spawn(move || talk(other));
    Ok(mine)
}

#[test]
fn a_discipline_in_another_process_decides_as_in_this_one() {
    // It drops at the arrival and at the departure, marks, waits for nothing and has no random numbers.
    with_cell("codel ecn limit 60p", |scenario| {
        let Backend::Network(network) = &scenario.backend else { panic!("a network") };
        let spec = network.discipline(&Trial { discipline: 0, name: String::new(), seed: 1 }).clone();
        let connect = move || {
            let (mine, other) = UnixStream::pair()?;
            let spec = spec.clone();
            std::thread::spawn(move || {
                let mut build =
                    |context: &giveway_qdisc::LinkContext, _| Ok(discipline(&spec, context).unwrap());
                Served::new(other).unwrap().run(true, &mut build, &mut || None)
            });
            Ok(mine)
        };
        let remote = ran(scenario, &Process::new("remote", &connect)).unwrap();
        let here = ran(scenario, &BuiltIn::new("codel ecn limit 60p")).unwrap();
        assert_eq!(remote.seen, here.seen);
        assert_eq!(remote.record.summary, here.record.summary);
    });
}

/// The answer without any effect.
const NOTHING: [u8; 18] = {
    let mut message = [0; 18];
    message[0] = 14;
    message
};

/// An answer that sends a packet that never arrived.
const INVENTED: [u8; 18] = {
    let mut message = NOTHING;
    message[5] = 2;
    message[6] = 77;
    message
};

fn rejected(talk: fn(UnixStream) -> io::Result<()>) -> Rejected {
    let mut found = None;
    with_cell("fifo", |scenario| {
        found = ran(scenario, &Process::new("liar", &move || talking(talk))).err();
    });
    found.expect("it is rejected")
}

#[test]
fn a_process_that_lies_is_rejected() {
    let invented = rejected(|mut end| {
        end.write_all(&NOTHING)?;
        (0..10_000).try_for_each(|_| end.write_all(&INVENTED))?;
        io::copy(&mut end, &mut io::sink()).map(drop)
    });
    assert_eq!((invented.code, invented.sentence.contains("not in the queue")), (Code::Contract, true));
    let forgot = rejected(|mut end| {
        (0..10_000).try_for_each(|_| end.write_all(&NOTHING))?;
        io::copy(&mut end, &mut io::sink()).map(drop)
    });
    assert_eq!(
        (forgot.code, forgot.sentence.contains("sends nothing")),
        (Code::Contract, true),
        "{forgot:?}"
    );
    let nonsense = rejected(|mut end| {
        end.write_all(&[3, 0, 0, 0, 9, 9, 9])?;
        end.read(&mut [0; 9]).map(drop)
    });
    assert_eq!(nonsense.code, Code::Contract);
    let long = rejected(|mut end| end.write_all(&[255; 9]).and_then(|()| end.read(&mut [0; 9]).map(drop)));
    assert_eq!(long.code, Code::Crash);
    let gone = rejected(|_| Ok(()));
    assert_eq!((gone.code, gone.sentence.contains("its process ended")), (Code::Crash, true));
}
