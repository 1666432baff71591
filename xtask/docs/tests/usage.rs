//! The program rejects unknown arguments. (This test also makes the gate build the program together with the
//! tests.)

use std::process::Command;

#[test]
fn an_unknown_argument_is_rejected() {
    let output = Command::new(env!("CARGO_BIN_EXE_giveway-docs")).arg("--chek").output().unwrap();
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("--chek"), "{errors}");
}
