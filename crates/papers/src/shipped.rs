//! The papers that are part of the program.

/// A paper that is part of the program, with its files.
pub struct Shipped {
    /// The name of the paper on the command line.
    pub id: &'static str,
    /// The files of the paper: name and text.
    pub files: &'static [(&'static str, &'static str)],
}

/// Each paper is a line: its folder under `papers/`, and its files without `paper.toml` and `claims.toml`.
macro_rules! shipped {
    ($($id:literal: $($file:literal)*;)*) => {
        /// All shipped papers, in the order of lists.
        pub static SHIPPED: &[Shipped] = &[$(
            Shipped {
                id: $id,
                files: &[
                    shipped!(@ $id "paper"),
                    shipped!(@ $id "claims"),
                    $(shipped!(@ $id $file),)*
                ],
            },
        )*];
    };
    (@ $id:literal $file:literal) => {
        (concat!($file, ".toml"), include_str!(concat!("../../../papers/", $id, "/", $file, ".toml")))
    };
}

shipped! {
    "efd": "transfers" "multimedia";
    "fpip": "unresponsive" "tcp-udp" "mixed" "chain-tcp" "chain-udp" "chain-web" "flows";
    "bsq": "backbone" "cascade";
    "trr": "measured" "delay" "shares" "excess";
    "p-spf": "switch";
    "dctcp": "long-lived" "sawtooth" "convergence" "multihop" "incast" "chunks";
    "bbr": "loss" "single" "change" "several" "mobile" "beside";
    "l4s-tests": "shares" "step" "bursts";
    "stratum-ns3": "isolation" "two-flows";
}
