;; A queue of at most 100 packets, first in, first out.
(module
  (import "giveway" "drop" (func $drop (param i64)))
  (memory 1)
  (global $head (mut i32) (i32.const 0))
  (global $count (mut i32) (i32.const 0))

  (func (export "enqueue") (param $packet i64)
    (if (i32.ge_u (global.get $count) (i32.const 100))
      (then (call $drop (local.get $packet)) (return)))
    (i64.store (call $place (global.get $count)) (local.get $packet))
    (global.set $count (i32.add (global.get $count) (i32.const 1))))

  (func (export "dequeue") (result i64)
    (local $packet i64)
    (if (i32.eqz (global.get $count)) (then (return (i64.const -1))))
    (local.set $packet (i64.load (call $place (i32.const 0))))
    (global.set $head (i32.add (global.get $head) (i32.const 1)))
    (global.set $count (i32.sub (global.get $count) (i32.const 1)))
    (local.get $packet))

  ;; The address of a place in the ring, counted from its head.
  (func $place (param $place i32) (result i32)
    (i32.shl
      (i32.rem_u (i32.add (global.get $head) (local.get $place)) (i32.const 128))
      (i32.const 3))))
