"""Certificates for tests, made by the openssl command."""

import dataclasses
import os
import subprocess

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


@dataclasses.dataclass(frozen=True)
class Certificate:
    cert: str  # PEM files
    key: str

    @property
    def both(self):
        """One file with key and certificate, as Java wants them."""
        path = self.cert + ".both"
        with open(path, "w", encoding="ascii") as out:
            for part in (self.key, self.cert):
                with open(part, encoding="ascii") as file:
                    out.write(file.read())
        return path


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=30)


class Authority:
    """A root that issues certificates; `ca` is its own, for those who trust it."""

    def __init__(self, folder, name):
        self.folder, self.name, self.issued = str(folder), name, 0
        self.ca, self.key = self._path("ca"), self._path("ca-key")
        openssl("req", "-x509", *KEY, "-keyout", self.key, "-out", self.ca, "-subj", f"/CN={name}", "-days", "2")

    def _path(self, what):
        return os.path.join(self.folder, f"{self.name}-{what}.pem")

    def issue(self, names="DNS:localhost,IP:127.0.0.1", days=2):
        """names: whom it is good for; days: below 0 it has expired."""
        self.issued += 1
        request, extensions = self._path("request"), self._path("extensions")
        made = Certificate(self._path(f"{self.issued}"), self._path(f"{self.issued}-key"))
        with open(extensions, "w", encoding="ascii") as out:
            out.write(f"basicConstraints=critical,CA:FALSE\nsubjectAltName={names}\n")
        openssl("req", "-new", *KEY, "-keyout", made.key, "-out", request, "-subj", f"/CN={self.name}-{self.issued}")
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.key, "-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", made.cert)
        return made


def files_of(certificate, client_ca=None):
    """The settings of a server that shows it; client_ca: and asks Kafka clients for one from there."""
    return {"TLS_CERT_FILE": certificate.cert, "TLS_KEY_FILE": certificate.key} | ({"TLS_CLIENT_CA_FILE": client_ca} if client_ca else {})
