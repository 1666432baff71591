// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compiles the driver against the headers of libbpf.

fn main() {
    let headers = std::env::var("DEP_BPF_INCLUDE").expect("libbpf-sys names its headers");
    println!("cargo::rerun-if-changed=src/drive.c");
    cc::Build::new().file("src/drive.c").include(headers).opt_level(2).compile("drive");
}
