//! Tasks on several threads, with results in the order of the tasks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `task` for the places 0 to `count` on `jobs` threads, of which the calling thread is one. Returns the
/// results in order.
///
/// A task gets its place, and a question: whether its result is still wanted. After an error only the tasks
/// before it are, and they still run. So the error is the same with any number of threads.
///
/// # Errors
/// The error of the first place that has one.
pub fn in_order<T: Send, E: Send>(
    count: usize,
    jobs: usize,
    task: impl Fn(usize, &dyn Fn() -> bool) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(usize::MAX);
    let slots: Vec<Mutex<Option<Result<T, E>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let wanted = || place <= failed.load(Ordering::Relaxed);
            let Some(slot) = slots.get(place).filter(|_| wanted()) else { return };
            let result = task(place, &wanted);
            if result.is_err() {
                failed.fetch_min(place, Ordering::Relaxed);
            }
            *slot.lock().expect("no thread panics with it") = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.max(1).min(count) {
            scope.spawn(work);
        }
        work();
    });
    // A place without a result is behind an error.
    slots.into_iter().map_while(|slot| slot.into_inner().expect("no thread panics with it")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_with_any_number_of_threads() {
        for jobs in [0, 1, 3, 50] {
            let found: Result<Vec<usize>, ()> = in_order(20, jobs, |place, _| Ok(place * place));
            assert_eq!(found.unwrap(), (0..20).map(|place| place * place).collect::<Vec<_>>());
        }
        assert_eq!(in_order(0, 4, |_, _| Err::<(), ()>(())), Ok(Vec::new()));
    }

    #[test]
    fn the_first_error_in_order_is_returned_although_a_later_one_comes_first() {
        let later = std::sync::Barrier::new(2);
        let found: Result<Vec<()>, usize> = in_order(2, 2, |place, _| {
            // The second task has failed before the first one does.
            if place == 0 {
                later.wait();
                return Err(0);
            }
            later.wait();
            Err(1)
        });
        assert_eq!(found, Err(0));
    }

    #[test]
    fn tasks_behind_an_error_are_not_wanted() {
        let ran = Mutex::new(Vec::new());
        let found = in_order(10, 1, |place, _| {
            ran.lock().unwrap().push(place);
            if place == 3 { Err(place) } else { Ok(()) }
        });
        assert_eq!(found, Err(3));
        assert_eq!(ran.into_inner().unwrap(), [0, 1, 2, 3]);
        // A task that is running when an earlier one fails learns that nobody wants its result.
        let begun = std::sync::Barrier::new(2);
        let found: Result<Vec<()>, &str> = in_order(2, 2, |place, wanted| {
            begun.wait();
            if place == 0 {
                return Err("first");
            }
            while wanted() {
                std::thread::yield_now();
            }
            Err("second")
        });
        assert_eq!(found, Err("first"));
    }
}
