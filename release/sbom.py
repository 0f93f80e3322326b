"""The SBOM of a release, as CycloneDX 1.6: each third-party part, and its dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.bom_ref import BomRef
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseAcknowledgement
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from release.parts import Part

FORM: Final = SchemaVersion.V1_6


def contents(parts: Sequence[Part], version: str, commit: str, made: datetime, source: str) -> str:
    """Return the list as JSON; the same parts make the same bytes.

    Args:
        commit: the commit that it was built from.
        made: the time of that commit.
        source: the repository's address.
    """
    own = Component(
        name="deskwire",
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=BomRef("deskwire"),
        purl=PackageURL("pypi", None, "deskwire", version),
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
        properties=[Property(name="deskwire:commit", value=commit)],
    )
    components = {part.name: _component(part) for part in parts}
    bom = Bom(
        serial_number=uuid5(NAMESPACE_URL, f"{source}/commit/{commit}"),
        metadata=BomMetaData(component=own, timestamp=made.astimezone(UTC)),
        components=components.values(),
    )
    bom.register_dependency(own, [components[part.name] for part in parts if part.direct])
    for part in parts:
        bom.register_dependency(components[part.name], [components[name] for name in part.needs])
    return str(make_outputter(bom, OutputFormat.JSON, FORM).output_as_string(indent=2)) + "\n"


def objections(text: str) -> str | None:
    """Return the error of the published CycloneDX schema for an SBOM, or None."""
    found = JsonStrictValidator(FORM).validate_str(text)
    return None if found is None else str(found)


def _component(part: Part) -> Component:
    group, _, name = part.name.rpartition("/")
    return Component(
        name=name,
        group=group or None,
        version=part.version,
        type=ComponentType.LIBRARY,
        bom_ref=BomRef(part.name),
        scope=ComponentScope.OPTIONAL if part.optional else ComponentScope.REQUIRED,
        purl=PackageURL(part.kind, group or None, name, part.version),
        licenses=[
            LicenseFactory().make_from_string(
                part.licence, license_acknowledgement=LicenseAcknowledgement.DECLARED
            )
        ],
    )
