"""Tags the wheel: for every Python 3, for this platform only."""

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.dist import Distribution


class WithLibraries(Distribution):
    """What is packed is built already; it has no extension of Python, but is no pure Python."""

    def has_ext_modules(self):
        return True


class ForEveryPython(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(distclass=WithLibraries, cmdclass={"bdist_wheel": ForEveryPython})
