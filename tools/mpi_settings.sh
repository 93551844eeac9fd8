# Settings to start several ranks with mpirun on one machine, also as root, in a container, and with more ranks than
# cores. Each setting has two names, since Open MPI 5 does not read the launcher's names of Open MPI 4.1. Shell scripts
# source this file; CMake and Python read its lines `export NAME=VALUE`. Do not source it in jobs of several nodes: with
# :oversubscribe, mpirun of Open MPI 5 places all ranks on the first node.

# Root may start ranks.
export OMPI_ALLOW_RUN_AS_ROOT=1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# A machine may have more ranks than cores, and no rank is bound to a core.
export OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_hwloc_default_binding_policy=none

# Containers forbid the system calls that copy memory between processes.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_smsc=^cma

# The ranks of a node exchange their addresses without a shared file.
export PMIX_MCA_gds=hash
