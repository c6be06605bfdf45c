"""The pages of docs as a site: every link holds, every page is there, nothing comes from the network."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r"<(?:link|script|img|iframe)\b[^>]*?(?:href|src)=[\"']?([^\"' >]+)")


def _built(docs: Path, site: Path) -> Path:
    config = load_config(
        str(ROOT / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(site), strict=True
    )
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return site


def test_every_page_is_there_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = _built(ROOT / "docs", tmp_path)
    written = {file.relative_to(site).with_suffix("") for file in site.rglob("*.html")}
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("")
        assert (name.parent / "index" if name.name == "README" else name) in written
    start = (site / "index.html").read_text(encoding="utf-8")
    assert "detectors/visibility.html" in start, "the navigation lists every detector"
    for file in site.rglob("*.html"):
        for address in LOADED.findall(file.read_text(encoding="utf-8")):
            assert not address.startswith(("http", "//")), (file, address)


@pytest.mark.parametrize("link", ["absent.md", "copying.md#no-such-heading"])
def test_a_broken_link_fails_the_build(tmp_path: Path, link: str) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs)
    with (docs / "limits.md").open("a", encoding="utf-8") as page:
        page.write(f"\n[broken]({link})\n")
    with pytest.raises(Abort):
        _built(docs, tmp_path / "site")
