# userturn: does a language model know what comes after its own answer?
# The rules are in rules/, what they run is in src/userturn, the study is in config/.
from snakemake.utils import min_version

min_version("9.0")


include: "rules/common.smk"
include: "rules/sources.smk"
include: "rules/posttrain.smk"
include: "rules/assistant_turns.smk"
include: "rules/contexts.smk"
include: "rules/user_turns.smk"
include: "rules/likelihood.smk"
include: "rules/judge.smk"
include: "rules/analyse.smk"
include: "rules/report.smk"


rule all:
    default_target: True
    input:
        layout.REPORT,


# Snakemake's own lock outlives a killed run; this one goes with the process that holds it.
onstart:
    try:
        RunLock(layout.RUN_LOCK).hold()
    except RunLockHeld as error:
        raise WorkflowError(f"{error}")
