# The Spack recipe of Finch. The environment variable FINCH_SOURCE is the address of the Git repository:
#
#   export FINCH_SOURCE=https://HOST/finch.git
#   spack repo create ~/finch-spack && mkdir -p ~/finch-spack/packages/finch
#   cp tools/packaging/spack/package.py ~/finch-spack/packages/finch/ && spack repo add ~/finch-spack
#   spack install finch            (finch +cuda cuda_arch=80,90)
import os

from spack.package import *

try:  # Spack 1.0 has moved its packages to a separate repository
    from spack_repo.builtin.build_systems.cmake import CMakePackage
    from spack_repo.builtin.build_systems.cuda import CudaPackage
except ImportError:
    pass


class Finch(CMakePackage, CudaPackage):
    """Evolves convolutional networks on a Slurm cluster: islands of workers, each a group of MPI ranks."""

    git = os.environ.get("FINCH_SOURCE", "FINCH_SOURCE-is-not-set")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("nccl", default=True, when="+cuda", description="Sums over the GPUs of a worker by NCCL")
    variant("tests", default=False, description="Build the tests")
    variant("report", default=False, description="What finch-report needs")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("git", type="build")

    depends_on("mpi")
    depends_on("hdf5@1.10:1.14 ~mpi+shared")
    depends_on("yaml-cpp@0.7:")
    depends_on("onednn@2.6:3 cpu_runtime=omp")
    depends_on("cli11@2.1:")
    depends_on("fmt@9:")
    depends_on("spdlog@1.10:")
    depends_on("zlib-api")
    depends_on("libpng@1.6:")
    depends_on("jpeg")
    depends_on("rapidjson")
    depends_on("eigen@3.4:3")
    depends_on("nlopt@2.7:")

    with when("+tests"):
        depends_on("doctest", type="build")
        depends_on("python@3.9:", type="build")
        depends_on("py-numpy", type="build")
        depends_on("py-h5py", type="build")
        depends_on("py-pillow", type="build")

    with when("+report"):
        depends_on("python@3.9:", type="run")
        depends_on("py-h5py", type="run")
        depends_on("py-numpy", type="run")
        depends_on("py-pandas", type="run")
        depends_on("py-plotly", type="run")
        depends_on("py-scikit-learn", type="run")
        depends_on("py-pillow", type="run")
        depends_on("py-pyyaml", type="run")

    with when("+cuda"):
        depends_on("cuda@12.4:")
        depends_on("cudnn@9:")
        depends_on("nccl", when="+nccl")
        # The headers of cudnn-frontend: Spack has no package of them. The version is the same as in tools/install.sh.
        resource(
            name="cudnn-frontend",
            git="https://github.com/NVIDIA/cudnn-frontend.git",
            tag="v1.32.0",
            placement="cudnn-frontend",
        )

    conflicts("%gcc@:11", msg="Finch needs GCC 12 or later")

    generator("ninja")

    def cmake_args(self):
        arguments = [
            self.define("FINCH_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
            self.define_from_variant("BUILD_TESTING", "tests"),
            self.define("FINCH_WERROR", False),
        ]
        if self.spec.satisfies("+cuda"):
            arguments.append(self.define("FINCH_CUDNN_FRONTEND", os.path.join(self.stage.source_path, "cudnn-frontend", "include")))
            architectures = self.spec.variants["cuda_arch"].value
            if "none" not in architectures:
                arguments.append(self.define("CMAKE_CUDA_ARCHITECTURES", architectures))
        return arguments

    def setup_run_environment(self, env):
        env.set("FINCH_HOME", self.prefix)
