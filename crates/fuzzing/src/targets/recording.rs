//! Any bytes between a bridge and the process that writes its recording.

use giveway_recording::{LONGEST_ANSWER, answered, receive, send};

/// Input: requests, each behind its length. The same bytes are also read as answers.
pub fn run(input: &[u8]) {
    let mut rest = input;
    while let Ok(Some(request)) = receive(&mut rest) {
        let mut again = Vec::new();
        send(&mut again, &request).expect("it is as short as it was");
        let same = receive(&mut &again[..]).expect("it is valid").expect("it is there");
        assert_eq!(format!("{same:?}"), format!("{request:?}"));
    }
    let mut rest = input;
    while let Ok(answer) = answered(&mut rest) {
        // Bytes that are no text become a character of three bytes.
        assert!(answer.map_or_else(|text| text.len(), |()| 0) <= 3 * LONGEST_ANSWER);
    }
}
