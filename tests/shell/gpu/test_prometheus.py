"""Gauges of GPUs, read from expositions and from a server."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from verlwatch.shell.gpu._card import Card, Fault, SourceError
from verlwatch.shell.gpu.prometheus import Gauges, cards_of

RAY = """\
# HELP ray_node_gram_used Total GPU RAM usage bytes on a ray node
# TYPE ray_node_gram_used gauge
ray_node_gram_used{GpuDeviceName="NVIDIA H100",GpuIndex="0",Version="2.46.0",ip="10.0.0.7"} 28672.0
ray_node_gram_used{GpuDeviceName="NVIDIA H100",GpuIndex="1",Version="2.46.0",ip="10.0.0.7"} 46080.0
ray_node_gram_available{GpuDeviceName="NVIDIA H100",GpuIndex="0",Version="2.46.0",ip="10.0.0.7"} 53248.0
ray_node_gpus_utilization{GpuDeviceName="NVIDIA H100",GpuIndex="0",Version="2.46.0",ip="10.0.0.7"} 97.0
ray_node_mem_used{ip="10.0.0.7"} 1.0e+11
"""
LABELS = (
    'gpu="3",UUID="GPU-9f3a",pci_bus_id="00000000:3B:00.0",device="nvidia3",modelName="NVIDIA H100 80GB HBM3",'
    'Hostname="gpu-node-3"'
)
DCGM = f"""\
# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{{{LABELS}}} 28672
DCGM_FI_DEV_FB_FREE{{{LABELS}}} 52224
DCGM_FI_DEV_FB_RESERVED{{{LABELS}}} 1024
DCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 88
DCGM_FI_DEV_POWER_USAGE{{{LABELS}}} 655.25
DCGM_FI_DEV_GPU_TEMP{{{LABELS}}} 66
DCGM_FI_DEV_XID_ERRORS{{{LABELS},err_code="0",err_msg="No Error"}} 0
DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{{LABELS}}} 2
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{{{LABELS}}} 32
"""


def test_rays_gauges_are_in_mib_and_tell_the_node() -> None:
    first, second = cards_of(RAY, "here")
    assert first == Card(
        "0", {"name": "NVIDIA H100", "used_gb": 28.0, "total_gb": 80.0, "utilization": 97.0}, host="10.0.0.7"
    )
    assert second.values == {"name": "NVIDIA H100", "used_gb": 45.0}


def test_dcgms_gauges_tell_the_host_the_card_and_its_health() -> None:
    (card,) = cards_of(DCGM, "here")
    assert (card.host, card.gpu) == ("gpu-node-3", "3")
    assert card.values == {
        "uuid": "GPU-9f3a",
        "name": "NVIDIA H100 80GB HBM3",
        "used_gb": 28.0,
        "total_gb": 80.0,
        "utilization": 88.0,
        "power_w": 655.25,
        "temperature_c": 66.0,
        "pcie_replay": 2.0,
        "throttle": "thermal",
    }


def test_mig_instances_are_cards_of_their_own() -> None:
    text = "".join(
        f'DCGM_FI_DEV_FB_USED{{gpu="0",GPU_I_PROFILE="1g.10gb",GPU_I_ID="{part}"}} {1024 * part}\n' for part in (1, 2)
    )
    assert [(card.gpu, card.values["mig"], card.values["used_gb"]) for card in cards_of(text, "here")] == [
        ("0:1", "1g.10gb", 1.0),
        ("0:2", "1g.10gb", 2.0),
    ]


@pytest.mark.parametrize(
    "line",
    [
        'DCGM_FI_DEV_FB_USED{gpu="0"',
        'DCGM_FI_DEV_FB_USED{gpu="0"} ',
        'DCGM_FI_DEV_FB_USED{gpu="0"} NaN',
        'DCGM_FI_DEV_FB_USED{gpu="0"} -1',
        'DCGM_FI_DEV_FB_USED{gpu="0"} +Inf',
        'DCGM_FI_DEV_FB_USED{gpu="٣"} 1',
        'DCGM_FI_DEV_FB_USED{gpu="0123456789"} 1',
        'DCGM_FI_DEV_FB_USED{device="nvidia0"} 1',
        "DCGM_FI_DEV_FB_USED{} 1",
        "DCGM_FI_DEV_FB_USED{=} }{",
        'DCGM_FI_DEV_FB_USED{gpu="0",gpu="1"} 1',
    ],
)
def test_a_line_that_is_not_well_formed_is_passed_over(line: str) -> None:
    assert [card.gpu for card in cards_of(f"{line}\n{RAY}", "here")] == ["0", "1"]


class _Exporter(http.server.BaseHTTPRequestHandler):
    text, status = RAY, 200

    def do_GET(self) -> None:
        body = self.text.encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def exporter() -> Iterator[tuple[type[_Exporter], str]]:
    handler = type("Exporter", (_Exporter,), {})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_url_is_asked_without_a_proxy(exporter: tuple[type[_Exporter], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert [card.values["used_gb"] for card in Gauges(exporter[1], "here")().cards] == [28.0, 45.0]


def test_an_xid_is_told_when_it_changes_and_not_how_it_was_found(exporter: tuple[type[_Exporter], str]) -> None:
    handler, url = exporter
    gauges = Gauges(url, "here")
    told = []
    for xid in (31, 31, 79, 79, 0, 79):
        handler.text = DCGM.replace('err_msg="No Error"} 0', f'err_msg="x"}} {xid}')
        told.append(gauges().faults)
    fault = (Fault("xid", "Xid 79", "3", "gpu-node-3"),)
    assert told == [(), (), fault, (), (), fault]


def test_what_a_url_does_not_give_is_told(exporter: tuple[type[_Exporter], str]) -> None:
    handler, url = exporter
    handler.text = "up 1\n"
    with pytest.raises(SourceError, match="shows no gauges of GPUs"):
        Gauges(url, "here")()
    handler.status = 302
    with pytest.raises(SourceError, match="answered 302"):
        Gauges(url, "here")()
    with pytest.raises(SourceError, match=r"cannot be read: .*refused"):
        Gauges("http://127.0.0.1:1/metrics", "here")()


def test_an_answer_that_is_too_large_or_too_slow_is_left(
    exporter: tuple[type[_Exporter], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SourceError, match=r"within 0 s|cannot be read"):
        Gauges(exporter[1], "here", limit_s=0.0)()
    monkeypatch.setattr("verlwatch.shell.gpu.prometheus._BYTES", 100)
    with pytest.raises(SourceError, match="answered more than"):
        Gauges(exporter[1], "here")()
