# From scores and judgements to numbers.
rule analyse:
    input:
        assistant_turns=[
            layout.assistant_turns(m, d) for m in study.models for d in study.datasets
        ],
        scores=[layout.scores(m, d) for m in study.models for d in study.datasets],
        judgements=[
            cell.judgements(judge)
            for judge in study.judges
            for cell in grid.cells(study)
        ],
        held_out=[
            path
            for judge in grid.judges_with(study, trained=True)
            for path in (layout.judge_held_out(judge), layout.judge_validation(judge))
        ],
        gold=([layout.GOLD_LABELS] if study.gold else [])
        + [layout.gold(judge) for judge in grid.judges_with(study, gold=True)],
        turns=[cell.user_turns for pair in grid.repeated(study) for cell in pair]
        + [cell.user_turns for cell in grid.baselines_compared(study)],
        curves=[layout.training_curve(variant) for variant in grid.variants(study)],
        exclusions=[study.exclusions] if study.exclusions else [],
        likelihood=[layout.likelihood(m, d) for m, d in grid.scored(study)],
    output:
        numbers=layout.NUMBERS,
        manifest=layout.manifest("analyse"),
    log:
        layout.log("analyse"),
    conda:
        "../envs/workflow.yaml"
    threads: CORES
    params:
        spec=specs.analyse(study),
        triggers=triggers("analyse", "workflow"),
    message:
        "Computing the numbers"
    shell:
        stage("analyse", "workflow")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest} --threads {threads}"
