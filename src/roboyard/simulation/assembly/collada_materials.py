"""Colours and pictures of a COLLADA file's materials; what cannot be understood leaves the plain grey."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from lxml import etree

from roboyard.description.model import Material, Rgba
from roboyard.simulation.assembly.near import near

_PLAIN: Rgba = (0.7, 0.7, 0.7, 1.0)
_UNSEEN = 0.05
"""Materials that a file claims to be fainter are taken for opaque: exporters disagree about which end of the scale is
which, and nobody draws what cannot be seen."""


def materials_of(root: etree._Element, file: Path) -> dict[str, Material]:
    """Materials by id.

    Args:
        root: Of the document, its tags without prefixes.
        file: Where it stands; pictures are looked for near it.
    """
    ids = {str(element.get("id")): element for element in root.iter() if element.get("id")}
    found: dict[str, Material] = {}
    for element in root.iter("material"):
        effect = element.find("instance_effect")
        target = ids.get(str(effect.get("url"))[1:]) if effect is not None else None
        if target is not None and element.get("id"):
            found[str(element.get("id"))] = _material(str(element.get("name") or ""), target, ids, file)
    return found


def _material(name: str, effect: etree._Element, ids: dict[str, etree._Element], file: Path) -> Material:
    shading = next((e for e in effect.iter("phong", "lambert", "blinn", "constant")), None)
    if shading is None:
        return Material(name, _PLAIN)
    diffuse, emission = shading.find("diffuse"), shading.find("emission")
    picture = _picture(diffuse, effect, ids, file)
    plain = (1.0, 1.0, 1.0, 1.0) if picture is not None else _PLAIN
    red, green, blue, _ = _colour(diffuse) or plain
    glow = _colour(emission) or (0.0, 0.0, 0.0, 1.0)
    return Material(name, (red, green, blue, _alpha(shading)), picture, glow[:3])


def _colour(channel: etree._Element | None) -> Rgba | None:
    values = _floats(channel.findtext("color") if channel is not None else None)
    if len(values) < 3:
        return None
    red, green, blue = (min(max(value, 0.0), 1.0) for value in values[:3])
    return red, green, blue, min(max(values[3], 0.0), 1.0) if len(values) > 3 else 1.0


def _floats(text: str | None) -> list[float]:
    try:
        return [float(word) for word in (text or "").split()[:4]]
    except ValueError:
        return []


def _alpha(shading: etree._Element) -> float:
    """Opacity by COLLADA 1.4.1, 7 "determining transparency"."""
    transparent = shading.find("transparent")
    amounts = _floats(shading.findtext("transparency/float"))
    if transparent is None and not amounts:
        return 1.0
    colour = _colour(transparent) or (1.0, 1.0, 1.0, 1.0)
    amount = amounts[0] if amounts else 1.0
    if transparent is not None and transparent.get("opaque") == "RGB_ZERO":
        alpha = 1.0 - amount * (0.212671 * colour[0] + 0.715160 * colour[1] + 0.072169 * colour[2])
    else:
        alpha = amount * colour[3]
    return alpha if _UNSEEN < alpha <= 1.0 else 1.0


def _picture(
    channel: etree._Element | None, effect: etree._Element, ids: dict[str, etree._Element], file: Path
) -> Path | None:
    """File of a channel's picture: texture → sampler → surface → image, as far as the file goes the long way."""
    texture = channel.find("texture") if channel is not None else None
    if texture is None:
        return None
    params = {str(one.get("sid")): one for one in effect.iter("newparam")}
    name = str(texture.get("texture"))
    for _ in range(3):
        param = params.get(name)
        if param is None:
            break
        image = param.find(".//instance_image")
        inner = param.findtext(".//source") or param.findtext(".//init_from")
        name = str(image.get("url"))[1:] if image is not None else (inner or "").strip()
    image = ids.get(name)
    if image is None or image.tag != "image":
        return None
    start = image.find("init_from")
    text = (start.findtext("ref") or start.text or "") if start is not None else ""
    return near(unquote(text.strip()), file)
