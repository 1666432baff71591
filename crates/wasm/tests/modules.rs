//! A module as a discipline: the contract, the limits, and every mistake with its sentence.

use giveway_qdisc::contract::{Op, drive};
use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, Outbox, Packet, Properties, Qdisc, Rate, Streams, Time};
use giveway_wasm::{Failure, Limits, Mistake, Module, ModuleError, Queue};

const FIFO: &str = include_str!("modules/fifo.wat");

fn bytes_of(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

fn context() -> LinkContext {
    LinkContext::new(Rate::mbit(10), Streams::new(1))
}

fn queue(text: &str) -> (Queue<u64>, Failure) {
    let module = Module::read(&bytes_of(text), Limits::default()).unwrap();
    let failure = Failure::default();
    (Queue::new(&module, &context(), &failure).unwrap(), failure)
}

/// Offers packets, one each millisecond, each followed by a dequeue. Returns the numbers that left.
fn offer(queue: &mut Queue<u64>, packets: u64) -> Vec<u64> {
    let mut out = Outbox::default();
    let mut left = Vec::new();
    for number in 0..packets {
        let mut cx = Cx::new(Time::ms(number), &mut out);
        queue.enqueue(Packet::new(FlowKey(number % 3), 1000, number), &mut cx);
        if let Next::Packet(packet) = queue.dequeue(&mut cx) {
            left.push(packet.payload);
        }
    }
    left
}

/// The first mistake of a module with these functions.
fn mistake(functions: &str) -> Mistake {
    let (mut queue, failure) = queue(&format!("(module {functions})"));
    offer(&mut queue, 4);
    failure.mistake().unwrap_or_else(|| panic!("no mistake: {functions}"))
}

#[test]
fn a_module_keeps_the_contract() {
    let (mut queue, failure) = queue(FIFO);
    let ops: Vec<Op> = (0..3000_u16)
        .map(|step| match step % 5 {
            0 | 2 => {
                Op::Enqueue { flow: step as u8, bytes: step.wrapping_mul(31), class: 0, ecn: step % 2 == 0 }
            }
            1 if step > 1500 => Op::Enqueue { flow: 1, bytes: 9, class: 0, ecn: false },
            3 => Op::Wait(step),
            _ => Op::Dequeue,
        })
        .collect();
    drive(&mut queue, Properties::plain("100p".parse().unwrap()), &ops).unwrap();
    assert_eq!(failure.mistake(), None);
    let (fuel, packets) = failure.fuel();
    assert!(packets > 1000 && (10..60).contains(&(fuel / packets)), "{fuel} for {packets} packets");
}

#[test]
fn packets_leave_in_their_order_and_the_limit_drops() {
    let (mut queue, _) = queue(FIFO);
    assert_eq!(offer(&mut queue, 5), [0, 1, 2, 3, 4]);
    let mut out = Outbox::default();
    for number in 0..130 {
        queue.enqueue(Packet::new(FlowKey(1), 1000, number), &mut Cx::new(Time::s(1), &mut out));
    }
    assert_eq!((queue.backlog().packets, out.dropped.len()), (100, 30));
    assert_eq!(out.dropped[0].0.payload, 100);
}

#[test]
fn a_module_sees_what_the_contract_says() {
    // Sends the packet if all imports have the values of the test; otherwise it stops.
    let (mut queue, failure) = queue(
        r#"(module
          (import "giveway" "now" (func $now (result i64)))
          (import "giveway" "rate" (func $rate (result i64)))
          (import "giveway" "mtu" (func $mtu (result i32)))
          (import "giveway" "bytes" (func $bytes (param i64) (result i32)))
          (import "giveway" "flow" (func $flow (param i64) (result i64)))
          (import "giveway" "ecn" (func $ecn (param i64) (result i32)))
          (import "giveway" "mark" (func $mark (param i64) (result i32)))
          (import "giveway" "random" (func $random (result i64)))
          (global $packet (mut i64) (i64.const -1))
          (func $must (param i32) (if (i32.eqz (local.get 0)) (then unreachable)))
          (func (export "enqueue") (param i64)
            (global.set $packet (local.get 0))
            (call $must (i64.eq (call $now) (i64.const 7000000)))
            (call $must (i64.eq (call $rate) (i64.const 10000000)))
            (call $must (i32.eq (call $mtu) (i32.const 1500)))
            (call $must (i32.eq (call $bytes (local.get 0)) (i32.const 1000)))
            (call $must (i64.eq (call $flow (local.get 0)) (i64.const 9)))
            (call $must (i32.eqz (call $ecn (local.get 0))))
            (call $must (i32.eqz (call $mark (local.get 0))))
            (call $must (i64.ne (call $random) (call $random))))
          (func (export "dequeue") (result i64) (global.get $packet)))"#,
    );
    let mut out = Outbox::default();
    let mut cx = Cx::new(Time::ms(7), &mut out);
    queue.enqueue(Packet::new(FlowKey(9), 1000, 5), &mut cx);
    assert!(queue.dequeue(&mut cx).packet().is_some());
    assert_eq!(failure.mistake(), None);
}

const KEEP: &str = r#"(global $packet (mut i64) (i64.const -1))
    (func (export "enqueue") (param i64) (global.set $packet (local.get 0)))"#;

#[test]
fn a_loop_without_end_uses_up_its_fuel() {
    let found = mistake(
        r#"(func (export "enqueue") (param i64) (loop $again (br $again)))
        (func (export "dequeue") (result i64) (i64.const -1))"#,
    );
    assert_eq!(
        found.to_string(),
        "enqueue at 0 s used all its fuel: a call has 10000, and up to 2000000 if earlier calls left it"
    );
}

#[test]
fn memory_is_bounded() {
    let found = mistake(
        r#"(memory 1)
        (func (export "enqueue") (param i64) (drop (memory.grow (i32.const 1000))))
        (func (export "dequeue") (result i64) (i64.const -1))"#,
    );
    assert_eq!(found.to_string(), "enqueue at 0 s wants more than 16777216 bytes of memory");
}

#[test]
fn packets_cannot_be_sent_twice_invented_or_forgotten() {
    let twice = mistake(&format!("{KEEP} (func (export \"dequeue\") (result i64) (i64.const 0))"));
    // Packet 0 leaves, and packet 1 has another number.
    assert_eq!(twice.to_string(), "dequeue at 0.001 s sends packet 0, which is not in the queue");
    let invented = mistake(&format!("{KEEP} (func (export \"dequeue\") (result i64) (i64.const 77))"));
    assert!(invented.to_string().contains("sends packet 77, which is not in the queue"), "{invented}");
    let forgotten = mistake(&format!("{KEEP} (func (export \"dequeue\") (result i64) (i64.const -1))"));
    assert_eq!(
        forgotten.to_string(),
        "dequeue at 0 s returns no packet, and 1 are queued: send one, or call wait_until"
    );
}

#[test]
fn time_does_not_go_back() {
    let found = mistake(&format!(
        "(import \"giveway\" \"wait_until\" (func $wait (param i64))) {KEEP}
        (func (export \"dequeue\") (result i64) (call $wait (i64.const 0)) (i64.const -1))"
    ));
    assert_eq!(found.to_string(), "dequeue at 0 s waits until 0 ns, which is not in the future");
}

#[test]
fn a_stop_is_a_mistake_and_everything_is_dropped() {
    let (mut queue, failure) =
        queue(&format!("(module {KEEP} (func (export \"dequeue\") (result i64) unreachable))"));
    let mut out = Outbox::default();
    let mut cx = Cx::new(Time::ZERO, &mut out);
    queue.enqueue(Packet::new(FlowKey(9), 1000, 5), &mut cx);
    assert!(matches!(queue.dequeue(&mut cx), Next::Empty));
    assert_eq!((queue.backlog().packets, out.dropped.len()), (0, 1));
    assert!(failure.mistake().unwrap().to_string().contains("unreachable"));
}

#[test]
fn a_module_reaches_nothing_outside() {
    let refused = |text: &str| Module::read(&bytes_of(text), Limits::default()).unwrap_err();
    let both =
        r#"(func (export "enqueue") (param i64)) (func (export "dequeue") (result i64) (i64.const -1))"#;
    let error = refused(&format!(
        r#"(module (import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32))) {both})"#
    ));
    assert!(matches!(&error, ModuleError::Import { name, .. } if name == "clock_time_get"), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("it imports wasi_snapshot_preview1.clock_time_get, which is not offered")
    );
    let seed = refused(&format!(r#"(module (import "giveway" "seed" (func (result i64))) {both})"#));
    assert!(seed.to_string().contains("it may import only giveway.now, wait_until, "), "{seed}");
    let typed = refused(&format!(r#"(module (import "giveway" "now" (func (result i32))) {both})"#));
    assert!(typed.to_string().contains("not a WebAssembly module"), "{typed}");
}

#[test]
fn files_that_are_no_discipline_are_refused() {
    let refused = |bytes: &[u8]| Module::read(bytes, Limits::default()).unwrap_err().to_string();
    assert!(refused(b"").contains("not a WebAssembly module"));
    assert!(refused(b"def enqueue(self, packet, cx):").contains("not a WebAssembly module"));
    assert_eq!(
        refused(&bytes_of("(module)")),
        "it exports no function enqueue: a discipline needs enqueue(i64) and dequeue() -> i64"
    );
    let other = r#"(module (func (export "enqueue") (param i32)) (func (export "dequeue") (result i64) (i64.const 0)))"#;
    assert_eq!(refused(&bytes_of(other)), "enqueue has another type than enqueue(i64)");
    let large = r#"(module (memory 4000) (func (export "enqueue") (param i64))
        (func (export "dequeue") (result i64) (i64.const -1)))"#;
    assert!(
        refused(&bytes_of(large)).contains("it needs more memory than 16777216 bytes"),
        "{}",
        refused(&bytes_of(large))
    );
}
