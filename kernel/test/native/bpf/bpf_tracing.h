// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Stand-in for the header of libbpf, for drive.c: a callback of the kernel is a plain function.
#pragma once

#define BPF_PROG(name, ...) name(__VA_ARGS__)
