# The study, the command of a stage, and the digests that say when to run it again.
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

from userturn import grid, layout, lifeline, specs
from userturn.code import stage_digest
from userturn.config.load import ConfigError, check_config
from userturn.environments import (
    EnvironmentMismatch,
    current_lock,
    engine_python,
    tell_jobs,
)
from userturn.runlock import RunLock, RunLockHeld

# Jobs end with the workflow that started them, also those that it is only just starting.
lifeline.announce()

# A config given on the command line stands for itself; only without one is it the embedded default study.
if not workflow.overwrite_configfiles:

    configfile: "config/config.yaml"


try:
    study = check_config(
        config,
        [Path(f) for f in workflow.overwrite_configfiles or ["config/config.yaml"]],
        sources=workflow.is_main_process,
    )
    LOCKS = {name: current_lock(name) for name in ("workflow", "engine")}
except (ConfigError, EnvironmentMismatch) as error:
    raise WorkflowError(f"{error}")


wildcard_constraints:
    model=r"[a-z0-9][a-z0-9._-]*",
    dataset=r"[a-z0-9][a-z0-9._-]*",
    perturbation=r"[a-z0-9][a-z0-9._-]*",
    temperature=r"t[0-9.]+",
    judge=r"[a-z0-9][a-z0-9._-]*",


# With --sdm conda a job finds its own Python first on the path.
CONDA = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
if CONDA:
    tell_jobs(workflow="python", engine="python")
else:
    tell_jobs(workflow=sys.executable, engine=engine_python())


# Elsewhere a job takes what --cores gives; on a cluster, where nothing gives it, the cores that it asks for. Jobs of a
# cluster are told all cores of their node.
CLUSTER = workflow.resource_settings.cores is None or not workflow.is_main_process
CORES = 4 if CLUSTER else workflow.cores

# Where turns are written. What a program makes up takes neither vLLM nor more than one core.
MADE_UP = study.engine.name == "simulated"
WRITER = "workflow" if MADE_UP else "engine"


def of_model(key):
    """What of `models.X.resources` a job asks for; the cluster's default where nobody has said."""
    return lambda wildcards: grid.resources(study, wildcards.model)[key]


# What the jobs that load a model ask of a cluster.
WRITER_CORES = 1 if MADE_UP else of_model("cores") if CLUSTER else CORES
LOADS_MODEL = {
    name: of_model(name) for name in ("gpu", "mem_mb", "runtime", "slurm_partition")
}


def stage(name, environment):
    """The command of a stage, to be completed with --spec, --log and --manifest."""
    lock = LOCKS[environment]
    source = "PYTHONPATH=src " if CONDA else ""
    return f'{source}"$PYTHON_OF_{environment.upper()}" -m userturn.stages.{name} --lock {lock.file}:{lock.sha256}'


def triggers(name, environment):
    """What makes a finished job run again, besides inputs and spec: code and lock."""
    return f"code {stage_digest(name)}, {LOCKS[environment].file} {LOCKS[environment].sha256[:16]}"


# One job with one model load produces a shard: all cells of a model, or of one (model, dataset).
SHARD = grid.shard(study, "{model}", "{dataset}")


def shard_of(wildcards):
    return grid.shard(study, wildcards.model, wildcards.get("dataset"))
