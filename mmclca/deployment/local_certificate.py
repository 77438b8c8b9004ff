# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Certificates for https on the local network.

Browsers give camera, position and offline use to pages over https only. An
own certificate authority, which is kept for the next time, signs a
certificate for the address of this computer.
"""

import socket
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address, IPv4Network, ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from mmclca.errors import Error
from mmclca.utils.extras import require
from mmclca.utils.files import replace_bytes

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

EXTRA = 'serve'
FOLDER = Path.home() / '.mmclca' / 'certificate'
AUTHORITY_DAYS = 730
DAYS = 30  # iPhones refuse more than 825
# an installed authority is trusted for these addresses, and for no website
NETWORKS = tuple(
    map(
        IPv4Network,
        (
            '10.0.0.0/8',
            '100.64.0.0/10',
            '127.0.0.0/8',
            '169.254.0.0/16',
            '172.16.0.0/12',
            '192.168.0.0/16',
        ),
    )
)
NO_WEBSITE = 'mmclca.invalid'  # the only permitted name


@dataclass(frozen=True)
class Authority:
    """Certificate authority of this computer.

    Args:
        certificate (x509.Certificate): Its certificate.
        key (ec.EllipticCurvePrivateKey): Its private key.
    """

    certificate: 'x509.Certificate'
    key: 'ec.EllipticCurvePrivateKey'

    @classmethod
    def open(cls, address: str) -> 'Authority':
        """Read the authority in ``FOLDER``, or create one if needed.

        Only the user can read its files.

        Args:
            address (str): IPv4 address to sign for.

        Raises:
            ImportError: If a package is missing.
            OSError: If the files cannot be read or written.
            Error: If a file is damaged.
        """
        require('cryptography', extra=EXTRA)
        from cryptography import x509

        folder = FOLDER
        certificate, key = folder / 'authority.crt', folder / 'authority.key'
        if certificate.is_file() and key.is_file():
            try:
                authority = cls(
                    x509.load_pem_x509_certificate(certificate.read_bytes()),
                    _read_key(key.read_bytes()),
                )
            except ValueError as error:
                raise Error(
                    f'{folder} is damaged ({error}); delete this folder'
                ) from error
            if authority.permits(address):
                return authority
        authority = cls.create(address)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        replace_bytes(key, _encode_key(authority.key))
        key.chmod(0o600)
        replace_bytes(certificate, authority.encode())
        return authority

    @classmethod
    def create(cls, address: str) -> 'Authority':
        """Create an authority that is valid for local addresses only."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        permitted: list[x509.GeneralName] = [x509.DNSName(NO_WEBSITE)]
        permitted += [x509.IPAddress(network) for network in NETWORKS]
        if not any(IPv4Address(address) in x for x in NETWORKS):
            permitted.append(x509.IPAddress(IPv4Network(address)))
        name = _make_name(f'mmclca on {socket.gethostname():.40}')
        signs = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            _build(name, name, key.public_key(), AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(True, 0), critical=True)
            .add_extension(signs, critical=True)
            .add_extension(
                x509.NameConstraints(permitted, None), critical=True
            )
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
                critical=False,
            )
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    def permits(self, address: str) -> bool:
        """Return whether it is valid long enough, and for an address."""
        from cryptography import x509

        extensions = self.certificate.extensions
        constraints = extensions.get_extension_for_class(x509.NameConstraints)
        networks = [
            x.value
            for x in constraints.value.permitted_subtrees or ()
            if isinstance(x, x509.IPAddress)
        ]
        end = self.certificate.not_valid_after_utc
        is_valid = end > _now() + timedelta(days=DAYS)
        return is_valid and any(ip_address(address) in x for x in networks)

    def encode(self) -> bytes:
        """Return its certificate in PEM, to install on a phone."""
        from cryptography.hazmat.primitives.serialization import Encoding

        return self.certificate.public_bytes(Encoding.PEM)

    def make_context(self, address: str) -> ssl.SSLContext:
        """Return a context for a server, with a new certificate."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding

        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [x509.IPAddress(ip_address(address))]
        )
        purpose = x509.ExtendedKeyUsage(
            [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]
        )
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(
            self.key.public_key()
        )
        name = _make_name('web app')  # an address would count as a host name
        certificate = (
            _build(name, self.certificate.subject, key.public_key(), DAYS)
            .add_extension(x509.BasicConstraints(False, None), critical=True)
            .add_extension(names, critical=False)
            .add_extension(purpose, critical=False)
            .add_extension(identifier, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with TemporaryDirectory() as folder:  # readable by the user only
            file = Path(folder, 'server.pem')
            file.write_bytes(
                _encode_key(key) + certificate.public_bytes(Encoding.PEM)
            )
            context.load_cert_chain(file)
        return context


def _make_name(common_name: str) -> 'x509.Name':
    from cryptography import x509

    attribute = x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, common_name)
    return x509.Name([attribute])


def _build(subject, issuer, public_key, days: int):
    """Begin a certificate that is valid from yesterday, for some days."""
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        # the clock of a phone may be behind
        .not_valid_before(_now() - timedelta(days=1))
        .not_valid_after(_now() + timedelta(days=days))
    )


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _encode_key(key) -> bytes:
    """Return a private key in PEM."""
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _read_key(content: bytes) -> 'ec.EllipticCurvePrivateKey':
    """Read a private key in PEM; raise a ValueError for another kind."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = serialization.load_pem_private_key(content, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError('the key is of another kind')
    return key
