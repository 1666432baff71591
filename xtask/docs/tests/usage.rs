//! The program is there and says what it does not understand. (That it is tried here also has it built with the tests, for the gate.)

use std::process::Command;

#[test]
fn an_unknown_word_is_told() {
    let told = Command::new(env!("CARGO_BIN_EXE_giveway-docs")).arg("--chek").output().unwrap();
    assert!(!told.status.success());
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(said.contains("--chek"), "{said}");
}
