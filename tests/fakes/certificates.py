"""Certificates as tests need them, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_NEW = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: str
    key: str


class Authority:
    """Signs certificates; ``certificate`` is its own."""

    def __init__(self, folder: Path, name: str) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("openssl makes the certificates")
        self._folder = folder
        self._name = name
        self.certificate = str(folder / f"{name}.pem")
        self._openssl("req", "-x509", *_NEW, "-nodes", "-days", "2", "-subj", f"/CN={name}", *self._out(name))

    def issue(self, name: str, names: str = "DNS:localhost,IP:127.0.0.1", *, days: int = 2, password: str = "") -> Pair:
        """A certificate for ``names``; one of -1 ``days`` has expired, a ``password`` encrypts the key."""
        (self._folder / "names").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
        lock = ("-passout", f"pass:{password}") if password else ("-nodes",)
        self._openssl("req", *_NEW, *lock, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self._openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", f"{self._name}.pem", "-CAkey", f"{self._name}.key",
            "-CAcreateserial", "-days", str(days), "-extfile", "names", "-out", f"{name}.pem",
        )  # fmt: skip
        return Pair(str(self._folder / f"{name}.pem"), str(self._folder / f"{name}.key"))

    def _out(self, name: str) -> tuple[str, ...]:
        return "-keyout", f"{name}.key", "-out", f"{name}.pem"

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)
