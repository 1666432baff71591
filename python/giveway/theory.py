"""Closed forms and bounds, to compare measurements with. Times are in seconds, windows in packets, rates per second.

Outside the range in which a formula holds, the result is None.
"""

from __future__ import annotations

from collections.abc import Sequence

from ._giveway import theory as _theory

__all__ = [
    "cubic_mean_window",
    "fair_share",
    "jain",
    "md1_waiting",
    "mg1_fifo_response",
    "mg1_processor_sharing_response",
    "mg1_waiting",
    "mm1_number",
    "mm1_response",
    "mm1_waiting",
    "mm1_waiting_quantile",
    "mm1k_loss",
    "mm1k_number",
    "pftk",
    "reno_mean_window",
    "square_root_law",
]


def jain(shares: Sequence[float]) -> float | None:
    """Jain's index of fairness, (Σx)² / (n·Σx²): 1 if all shares are equal, 1/n if one flow has everything (Jain,
    Chiu and Hawe, DEC-TR-301, 1984)."""
    return _theory.jain(list(shares))


def fair_share(rates: Sequence[float], capacity: float) -> float | None:
    """The max-min fair share: the rate that limits flows with these demands on a link of this capacity. None if all
    demands fit."""
    return _theory.fair_share(list(rates), capacity)


def mm1_waiting(arrivals: float, services: float) -> float | None:
    """Mean waiting time in M/M/1, seconds. ``arrivals`` and ``services`` are rates per second (Kleinrock, "Queueing
    Systems" 1, section 3.2)."""
    return _theory.mm1_waiting(arrivals, services)


def mm1_response(arrivals: float, services: float) -> float | None:
    """Mean time in the system (waiting and service) in M/M/1, seconds."""
    return _theory.mm1_response(arrivals, services)


def mm1_number(arrivals: float, services: float) -> float | None:
    """Mean number of customers in M/M/1, the one in service included."""
    return _theory.mm1_number(arrivals, services)


def mm1_waiting_quantile(arrivals: float, services: float, quantile: float) -> float | None:
    """A quantile (0 to 1) of the waiting time in M/M/1, seconds."""
    return _theory.mm1_waiting_quantile(arrivals, services, quantile)


def mm1k_loss(load: float, places: int) -> float:
    """Probability that a customer is lost in M/M/1/K with this number of places, the one in service included."""
    return _theory.mm1k_loss(load, places)


def mm1k_number(load: float, places: int) -> float:
    """Mean number of customers in M/M/1/K."""
    return _theory.mm1k_number(load, places)


def md1_waiting(arrivals: float, service: float) -> float | None:
    """Mean waiting time in M/D/1, seconds: services take ``service`` seconds each (Pollaczek and Khinchine)."""
    return _theory.md1_waiting(arrivals, service)


def mg1_waiting(arrivals: float, service: float, service_second_moment: float) -> float | None:
    """Mean waiting time in M/G/1, seconds: λ·E[S²] / (2·(1-ρ)) (Pollaczek and Khinchine)."""
    return _theory.mg1_waiting(arrivals, service, service_second_moment)


def mg1_fifo_response(arrivals: float, service: float, service_second_moment: float) -> float | None:
    """Mean time in the system in M/G/1 with first in, first out, seconds."""
    return _theory.mg1_fifo_response(arrivals, service, service_second_moment)


def mg1_processor_sharing_response(arrivals: float, service: float, size: float) -> float | None:
    """Mean time in the system of a customer that needs ``size`` seconds of service, in M/G/1 with processor sharing."""
    return _theory.mg1_processor_sharing_response(arrivals, service, size)


def square_root_law(loss: float, rtt: float, packets_per_ack: float = 1.0) -> float:
    """Throughput of a long TCP transfer, packets per second: √(3/(2·b·p)) / RTT (Mathis et al., CCR 27(3), 1997).

    Args:
        loss: p, the probability of a loss event per packet.
        rtt: Round-trip time, seconds.
        packets_per_ack: b; 2 with delayed acknowledgements.
    """
    return _theory.square_root_law(loss, rtt, packets_per_ack)


def pftk(
    loss: float, rtt: float, rto: float = 1.0, packets_per_ack: float = 2.0, max_window: float = float("inf")
) -> float:
    """Throughput of a long Reno transfer with timeouts, packets per second (Padhye et al., SIGCOMM 1998).

    Args:
        loss: Probability that a packet is the first lost of its round.
        rtt: Round-trip time, seconds.
        rto: First retransmission timeout, seconds.
        packets_per_ack: b; 2 with delayed acknowledgements.
        max_window: Largest window of the receiver, packets.
    """
    return _theory.pftk(loss, rtt, rto, packets_per_ack, max_window)


def reno_mean_window(loss: float) -> float:
    """Mean window of Reno with periodic losses, packets: √(3/(2·p)) (RFC 3649, section 3)."""
    return _theory.reno_mean_window(loss)


def cubic_mean_window(loss: float, rtt: float, c: float = 0.4, decrease_to: float = 0.7) -> float:
    """Mean window of CUBIC with periodic losses, packets (RFC 9438, section 5.1)."""
    return _theory.cubic_mean_window(loss, rtt, c, decrease_to)
