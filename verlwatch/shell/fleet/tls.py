"""Certificates: what a hub shows, and whom an agent believes.  TLS 1.2 at least; the rest is Python's default."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

from verlwatch.fields import read_regular

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)


class TlsError(Exception):
    """A certificate or key cannot be used; the text names the file and the remedy."""


def server(certificate: str, key: str, client_ca: str | None) -> ssl.SSLContext:
    """For who is asked; with ``client_ca`` those who ask need a certificate signed by it.  Raises TlsError."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load(context, certificate, key)
    if client_ca:
        _trust(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client(authority: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    """For who asks; believes what ``authority`` has signed, or those that the system believes.  Raises TlsError."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    if authority:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _trust(context, authority)
    if certificate:
        _load(context, certificate, key or certificate)
    return context


def leaf(certificate: str) -> str:
    """What `server` shows first of a file of certificates (PEM).  Raises TlsError."""
    _readable(certificate)
    found = _CERTIFICATE.search(Path(certificate).read_text("ascii", "replace"))
    return found[0] if found else ""


def pinned(shown: str, certificate: str | None, key: str | None) -> ssl.SSLContext:
    """For who asks one server, known by the certificate (PEM) that it shows, whatever its name and who signed it.

    What that certificate's key has signed is believed as well; its holder is the server.

    Raises:
        TlsError: a certificate or key cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # believed without the authority that has signed it
    try:
        context.load_verify_locations(cadata=shown)
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(
            f"what the daemon noted is no certificate ({_reason(error)}); give its authority instead"
        ) from None
    if certificate:
        _load(context, certificate, key or certificate)
    return context


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    for path in (certificate, key):
        _readable(path)
    try:
        # The password is asked for on the terminal otherwise, where nobody is.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(
            f"{certificate} and {key} are no certificate and its key ({_reason(error)}); both must be PEM, the key "
            "without a password"
        ) from None


def _trust(context: ssl.SSLContext, authority: str) -> None:
    _readable(authority)
    try:
        context.load_verify_locations(authority)
    except ssl.SSLError as error:
        raise TlsError(f"{authority} holds no certificate ({_reason(error)}); it must be PEM") from None


def _readable(path: str) -> None:
    try:
        read_regular(Path(path), 0)  # anything else may keep whoever opens it waiting
    except OSError as error:
        raise TlsError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)[:100] or type(error).__name__
