"""Where the files of lmt are, and the environment in which an MPI's programs run over it.

It binds nothing of the library: MPI programs need no change, ``lmt mpirun`` runs them.
"""

import shlex as _shlex
import subprocess as _subprocess
from importlib.metadata import version as _version
from pathlib import Path as _Path

__all__ = ["command", "environment", "include", "library", "provider"]
__version__ = _version("lmt-mpi")

_folder = _Path(__file__).resolve().parent

#: The command ``lmt``.
command = _folder / "bin" / "lmt"
#: The libfabric provider.
provider = _folder / "lib" / "liblmt-fi.so"
#: The C interface's shared library.
library = _folder / "lib" / "liblmt.so"
#: The folder of the C interface's header, ``lmt.h``.
include = _folder / "include"


def environment(mpi):
    """The variables that have programs of an MPI run over lmt, as a dict: what ``lmt mpirun-env`` prints.

    ``mpi`` is ``"mpich"``, ``"openmpi"`` or ``"intelmpi"``. They must be set before MPI is
    initialized, in all ranks: for ``mpiexec``, ``env={**os.environ, **lmt.environment("mpich")}``.

    Raises ``ValueError`` with one sentence if lmt knows no such MPI or has nothing to set for it.
    """
    said = _subprocess.run(
        [str(command), "mpirun-env", str(mpi)], stdout=_subprocess.PIPE, stderr=_subprocess.PIPE, text=True
    )
    if said.returncode != 0:
        raise ValueError(said.stderr.strip())
    words = _shlex.split(said.stdout, comments=True)
    return dict(word.split("=", 1) for word in words if word != "export")
