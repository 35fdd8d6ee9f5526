# The page, the files beside it where it would be too large, and the numbers as a table.
rule report:
    input:
        # made from all judgements and scores, and these from all else that the page shows: thousands of files that
        # Snakemake need not look at twice
        numbers=layout.NUMBERS,
        manifests=[layout.manifest("dataset", dataset) for dataset in study.datasets]
        + [layout.manifest("analyse")]
        + [layout.manifest("user_turns", *shard.name) for shard in grid.shards(study)]
        + [
            layout.manifest("judge", judge, *shard.name)
            for judge in study.judges
            for shard in grid.shards(study)
        ],
        trainings=[
            path(variant)
            for variant in grid.variants(study)
            for path in (layout.training_summary, layout.training_curve)
        ],
        before=[study.report.before] if study.report.before else [],
    output:
        page=report(layout.REPORT, caption="captions/page.rst", category="The study"),
        files=directory(layout.REPORT_FILES),
        table=report(
            layout.NUMBERS_TABLE, caption="captions/numbers.rst", category="The study"
        ),
        columns=layout.NUMBERS_TABLE_METADATA,
        manifest=layout.manifest("report"),
    log:
        layout.log("report"),
    conda:
        "../envs/workflow.yaml"
    # at most: Snakemake gives no more than there are
    threads: 8
    params:
        spec=specs.report(study),
        triggers=triggers("report", "workflow"),
    message:
        "Writing the report"
    shell:
        stage("report", "workflow")
        + " --spec {params.spec:q} --log {log} --manifest {output.manifest} --threads {threads}"
