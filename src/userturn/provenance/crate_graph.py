"""The description of a sealed study as linked data: what ran, from what, to what.

Follows RO-Crate 1.1 and the profile Provenance Run Crate 0.5 (https://w3id.org/ro/wfrun/provenance/0.5), whose words
are used thus: the Snakefile is the workflow; a stage is a tool and a step; a job is an action of its stage, told by its
manifest; a kind of artefact that a stage reads or writes, and a key of its spec, are parameters. What is not in the
crate has a name that begins with ``#``.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rocrate.model import ContextEntity  # type: ignore[import-untyped]
from rocrate.rocrate import ROCrate  # type: ignore[import-untyped]

from userturn import layout
from userturn.artefacts import canonical, sha256_text
from userturn.provenance.citation import CITATION, read_citation
from userturn.provenance.crate_study import SealedStudy, kind, media_type, purpose, readme
from userturn.provenance.crate_words import (
    DATA_TYPES,
    DONE,
    LOCK_FORMAT,
    PROFILES,
    TERMS,
    WORKFLOW_CRATE,
    WORKFLOW_PROFILE,
    circumstances,
    local,
    plain,
    reads_as,
    ref,
    refs,
    setting,
    step,
    tool,
    writes_as,
)  # fmt: skip
from userturn.provenance.lineage import Job, pinned_sources

SNAKEFILE = "Snakefile"
README = "README.md"
_RUN, _ORGANIZED, _ENGINE = "#run", "#organize", "#snakemake"


def describe(study: SealedStudy) -> ROCrate:
    """The crate of a study, ready to be written.

    Raises:
        ProvenanceError: a manifest does not say when its job ran, or ``CITATION.cff`` is not as its format has it.
    """
    graph = _Graph(study)
    graph.files()
    graph.parameters()
    graph.tools()
    graph.connections()
    graph.jobs()
    graph.workflow()
    graph.root()
    return graph.crate


class _Graph:
    def __init__(self, study: SealedStudy) -> None:
        self.study = study
        self._citation = read_citation(study.root)
        self.crate = ROCrate(version="1.1")
        self.crate.metadata.extra_terms.update(TERMS)
        products = [path for path in study.carried if Path(path).parent == layout.RESULTS]
        self._products = sorted(products, key=lambda path: layout.flow_rank(Path(path)))
        self._inputs = dict.fromkeys(study.configs, local("workflow", "input", "config"))
        self._outputs = {path: local("workflow", "output", kind(path)) for path in self._products}
        self._slots: dict[str, set[str]] = {}
        """Parameters that files stand for, each with those files."""
        for path, slot in (self._inputs | self._outputs).items():
            self._slots.setdefault(slot, set()).add(path)
        for stage, job in self._jobs():
            for one in job.manifest.inputs:
                self._slots.setdefault(reads_as(stage, one.path), set()).add(one.path)
            for written in job.manifest.outputs:
                self._slots.setdefault(writes_as(stage, written.path), set()).add(written.path)
        self._settings: dict[str, list[object]] = {}
        """Parameters that values stand for, each with the values."""
        for stage, job in self._jobs():
            for key, value in job.manifest.spec.items():
                self._settings.setdefault(setting(stage, key), []).append(value)

    def _jobs(self) -> list[tuple[str, Job]]:
        return [(stage, job) for stage, jobs in self.study.stages.items() for job in jobs]

    def _add(self, identifier: str, type_: str, **properties: Any) -> str:
        given = {key: value for key, value in properties.items() if value is not None and value != []}
        self.crate.add(ContextEntity(self.crate, identifier, properties={"@type": type_, **given}))
        return identifier

    def _file(self, path: str) -> str:
        return quote(path) if path in self.study.carried else local("file", path)

    def _file_properties(self, path: str) -> dict[str, Any]:
        facts = self.study.files[path]
        size = {} if facts.bytes is None else {"contentSize": str(facts.bytes)}
        return {"name": path, "encodingFormat": media_type(path), "sha256": facts.sha256, **size}

    def files(self) -> None:
        """Every file: those of the crate, and those that are only described."""
        licences = self.study.licences()
        locks = {f"envs/{name}" for name in self.study.description.get("locks", {})}
        examples: dict[str, list[str]] = {}
        for slot, paths in self._slots.items():
            for path in paths:
                examples.setdefault(path, []).append(slot)
        if locks & self.study.carried:
            self._add(LOCK_FORMAT, "CreativeWork", name="Requirements file of pip, with hashes")
        for path in self.study.files:
            if path == SNAKEFILE:
                continue
            more: dict[str, Any] = {"exampleOfWork": refs(examples[path])} if path in examples else {}
            more |= {"license": licences[path]} if path in licences else {}
            more |= {"conformsTo": ref(LOCK_FORMAT)} if path in locks else {}
            kinds: str | list[str] = "File"
            if Path(path).suffix == ".smk":
                kinds, more["isPartOf"] = ["File", "SoftwareSourceCode"], ref(SNAKEFILE)
                more["version"] = self.study.description["userturn"]
            properties = {"@type": kinds, **self._file_properties(path), **more}
            if path in self.study.carried:
                self.crate.add_file(self.study.root / path, path, properties=properties)
            else:
                self.crate.add(ContextEntity(self.crate, self._file(path), properties=properties))

    def parameters(self) -> None:
        """What stages and workflow are given and give."""
        for slot in sorted(self._slots):
            self.crate.add_formal_parameter(
                slot.rpartition("/")[2], "File", slot, properties={"multipleValues": len(self._slots[slot]) > 1}
            )
        for name, values in sorted(self._settings.items()):
            types = {DATA_TYPES[type(plain(value))] for value in values}
            self.crate.add_formal_parameter(
                name.rpartition("/")[2],
                types.pop() if len(types) == 1 else "Text",
                name,
                valueRequired=True,
            )

    def tools(self) -> None:
        """The stages: each a program, and a step of the workflow."""
        locks = self.study.description.get("locks", {})
        for position, (stage, jobs) in enumerate(self.study.stages.items()):
            made = [job.manifest for job in jobs]
            given = [reads_as(stage, one.path) for manifest in made for one in manifest.inputs]
            written = [writes_as(stage, one.path) for manifest in made for one in manifest.outputs]
            settings = [setting(stage, key) for manifest in made for key in manifest.spec]
            self._add(
                tool(stage),
                "SoftwareApplication",
                name=f"userturn {stage}",
                description=purpose(stage),
                softwareVersion=self.study.description["userturn"],
                url=self._citation.url,
                input=refs(sorted({*given, *settings})),
                output=refs(sorted(set(written))),
            )
            used = {one.lock.file for one in made if one.lock and locks.get(one.lock.file) == one.lock.sha256}
            self._add(
                step(stage),
                "HowToStep",
                name=stage,
                position=str(position),
                workExample=ref(tool(stage)),
                buildInstructions=refs(self._file(f"envs/{name}") for name in sorted(used)),
            )

    def connections(self) -> None:
        """Which stage's output is which stage's input, wherever a file went from one to the other."""
        writers = {one.path: stage for stage, job in self._jobs() for one in job.manifest.outputs}
        pairs: dict[str, set[tuple[str, str]]] = {}
        for stage, job in self._jobs():
            for one in job.manifest.inputs:
                if one.path in writers:
                    given = (writes_as(writers[one.path], one.path), reads_as(stage, one.path))
                    pairs.setdefault(step(stage), set()).add(given)
        for path in self._products:
            if path in writers:
                pairs.setdefault(SNAKEFILE, set()).add((writes_as(writers[path], path), self._outputs[path]))
        self._connected = {}
        for receiver, both in pairs.items():
            made = []
            for source, target in sorted(both):
                identifier = local("connection", source.removeprefix("#"), target.removeprefix("#"))
                connected = {"sourceParameter": ref(source), "targetParameter": ref(target)}
                made.append(self._add(identifier, "ParameterConnection", **connected))
            self._connected[receiver] = refs(made)
            if receiver != SNAKEFILE:
                self.crate.get(receiver)["connection"] = self._connected[receiver]

    def jobs(self) -> None:
        """The jobs: what each read, was told and wrote, and when."""
        for stage, job in self._jobs():
            manifest = job.manifest
            start, end = self.study.times[job.path]
            given = [self._file(one.path) for one in manifest.inputs]
            given += [self._source(source) for source in pinned_sources(manifest.facts)]
            for key, value in manifest.spec.items():
                identifier = local("job", job.name, "setting", key)
                example = ref(setting(stage, key))
                given.append(
                    self._add(identifier, "PropertyValue", name=key, value=plain(value), exampleOfWork=example)
                )
            action = self._add(
                local("job", job.name),
                "CreateAction",
                name=job.name,
                description=circumstances(manifest),
                instrument=ref(tool(stage)),
                object=refs(given),
                result=refs(self._file(one.path) for one in manifest.outputs),
                startTime=start,
                endTime=end,
                actionStatus=DONE,
                subjectOf=ref(self._file(job.path)),
            )
            self._add(
                local("control", job.name),
                "ControlAction",
                name=f"Snakemake ran {job.name}",
                instrument=ref(step(stage)),
                object=ref(action),
                startTime=start,
                endTime=end,
                actionStatus=DONE,
            )

    def _source(self, source: Any) -> str:
        pinned = source.model_dump(mode="json", exclude_none=True)
        text = canonical(pinned)
        return self._add(
            local("source", sha256_text(text)[:16]),
            "CreativeWork",
            name=str(source),
            description=f"A pinned source of the study: {text}",
            sha256=pinned.get("sha256"),
            version=pinned.get("revision", pinned.get("version")),
        )

    def workflow(self) -> None:
        """The workflow, the program that runs it, and the run as a whole."""
        study = self.study
        starts, ends = zip(*study.times.values(), strict=True)
        when = {"startTime": min(starts), "endTime": max(ends), "actionStatus": DONE}
        newest = sorted(study.jobs, key=lambda job: study.times[job.path][1], reverse=True)
        version = next((v for job in newest if (v := job.manifest.packages.get("snakemake"))), None)
        workflow = self.crate.add_workflow(
            study.root / SNAKEFILE,
            SNAKEFILE,
            lang="snakemake",
            lang_version=version,
            properties={
                "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
                "conformsTo": ref(WORKFLOW_PROFILE),
                **self._file_properties(SNAKEFILE),
                "name": "userturn",
                "description": "From pinned sources to user turns, judgements, numbers and a report.",
                "version": study.description["userturn"],
                "input": refs(self._inputs.values()),
                "output": refs(self._outputs.values()),
                "hasPart": refs(map(tool, study.stages)),
                "step": refs(map(step, study.stages)),
                "connection": self._connected.get(SNAKEFILE, []),
            },
        )
        self.crate.mainEntity = workflow
        engine = {"softwareVersion": version, "url": "https://snakemake.github.io"}
        self._add(_ENGINE, "SoftwareApplication", name="Snakemake", **engine)
        self._add(
            _RUN,
            "CreateAction",
            name=f"Run of study {study.name}",
            description=f"All {len(study.jobs):,} jobs that made the results, when each was last run.",
            instrument=ref(SNAKEFILE),
            object=refs(map(self._file, self._inputs)),
            result=refs(map(self._file, self._products)),
            **when,
        )
        self._add(
            _ORGANIZED,
            "OrganizeAction",
            name=f"Snakemake ran study {study.name}",
            instrument=ref(_ENGINE),
            object=refs(local("control", job.name) for _, job in self._jobs()),
            result=ref(_RUN),
            **when,
        )

    def root(self) -> None:
        """What the crate is, by whom, and under which licence."""
        study, root = self.study, self.crate.root_dataset
        root["name"], root["description"] = study.title, study.summary
        root["datePublished"] = max(end for _, end in study.times.values())
        root["mentions"] = refs([_RUN, _ORGANIZED, *(local("job", job.name) for _, job in self._jobs())])
        root["conformsTo"] = refs(PROFILES)
        self.crate.metadata["conformsTo"] = refs(["https://w3id.org/ro/crate/1.1", WORKFLOW_CRATE])
        for profile, name in PROFILES.items():
            self._add(profile, "CreativeWork", name=name, version=profile.rpartition("/")[2])
        root["license"] = "not stated"
        if self._citation.licence:
            told = f"The licence that {CITATION} names; texts of datasets and models have licences of their own."
            url = f"https://spdx.org/licenses/{quote(self._citation.licence)}"
            root["license"] = ref(self._add(url, "CreativeWork", name=self._citation.licence, description=told))
        authors = [
            self._add(
                one.orcid or local("author", one.name),
                "Person" if one.person else "Organization",
                name=one.name,
                url=one.website,
            )
            for one in self._citation.authors
        ]
        if authors:
            root["author"] = refs(authors)
        properties = {"@type": "File", "encodingFormat": media_type(README), "about": ref("./"), "name": README}
        self.crate.add_file(StringIO(readme(study)), README, properties=properties)
