//! The papers that are part of the program.

/// A paper that is part of the program, with its files.
pub struct Shipped {
    /// The name of the paper on the command line.
    pub id: &'static str,
    /// The files of the paper: name and text.
    pub files: &'static [(&'static str, &'static str)],
}

/// All shipped papers, in the order of lists.
pub const SHIPPED: &[Shipped] = &[
    Shipped {
        id: "efd",
        files: &[
            ("paper.toml", include_str!("../../../papers/efd/paper.toml")),
            ("claims.toml", include_str!("../../../papers/efd/claims.toml")),
            ("transfers.toml", include_str!("../../../papers/efd/transfers.toml")),
            ("multimedia.toml", include_str!("../../../papers/efd/multimedia.toml")),
        ],
    },
    Shipped {
        id: "fpip",
        files: &[
            ("paper.toml", include_str!("../../../papers/fpip/paper.toml")),
            ("claims.toml", include_str!("../../../papers/fpip/claims.toml")),
            ("unresponsive.toml", include_str!("../../../papers/fpip/unresponsive.toml")),
            ("tcp-udp.toml", include_str!("../../../papers/fpip/tcp-udp.toml")),
            ("mixed.toml", include_str!("../../../papers/fpip/mixed.toml")),
            ("chain-tcp.toml", include_str!("../../../papers/fpip/chain-tcp.toml")),
            ("chain-udp.toml", include_str!("../../../papers/fpip/chain-udp.toml")),
            ("chain-web.toml", include_str!("../../../papers/fpip/chain-web.toml")),
            ("flows.toml", include_str!("../../../papers/fpip/flows.toml")),
        ],
    },
    Shipped {
        id: "bsq",
        files: &[
            ("paper.toml", include_str!("../../../papers/bsq/paper.toml")),
            ("claims.toml", include_str!("../../../papers/bsq/claims.toml")),
            ("backbone.toml", include_str!("../../../papers/bsq/backbone.toml")),
            ("cascade.toml", include_str!("../../../papers/bsq/cascade.toml")),
        ],
    },
    Shipped {
        id: "trr",
        files: &[
            ("paper.toml", include_str!("../../../papers/trr/paper.toml")),
            ("claims.toml", include_str!("../../../papers/trr/claims.toml")),
            ("measured.toml", include_str!("../../../papers/trr/measured.toml")),
            ("delay.toml", include_str!("../../../papers/trr/delay.toml")),
            ("shares.toml", include_str!("../../../papers/trr/shares.toml")),
            ("excess.toml", include_str!("../../../papers/trr/excess.toml")),
        ],
    },
    Shipped {
        id: "p-spf",
        files: &[
            ("paper.toml", include_str!("../../../papers/p-spf/paper.toml")),
            ("claims.toml", include_str!("../../../papers/p-spf/claims.toml")),
            ("switch.toml", include_str!("../../../papers/p-spf/switch.toml")),
        ],
    },
];
