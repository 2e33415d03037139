"""Export of replays: GIF, MP4, HTML, pictures and text."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from snake_pz.drawing import picture, render
from snake_pz.files import replacing, write_text
from snake_pz.ranges import FPS, Range, check_number
from snake_pz.replay import Replay

if TYPE_CHECKING:
    from PIL import Image

GIF_CELL = 32
"""Pixels per cell of a GIF at most, which keeps 500 turns of four snakes under 3 MB."""

GIF_COLOURS = 127
"""Colours of a GIF. One more index marks unchanged pixels, which makes 7 bits."""

GIF_FPS = Range(0.1, 50, whole=False)
"""Turns per second of a GIF; 50 is the limit of viewers."""

LINGER = 2.0
"""Seconds for which the last picture of a GIF or film is shown."""


def pictures(replay: Replay, cell_size: int | None = None) -> Iterator[NDArray[np.uint8]]:
    """Pictures (h, w, 3) uint8 of the start and of every turn, made by `render.rgb_array`."""
    for state in replay.states():
        yield render.rgb_array(state, replay.rules, names=replay.names, cell_size=cell_size)


def texts(replay: Replay) -> Iterator[str]:
    """Texts of the start and of every turn, made by `render.ansi`."""
    for state in replay.states():
        yield render.ansi(state, replay.rules, names=replay.names)


def write_html(replay: Replay, path: str | Path) -> None:
    """Write a page that plays the replay. The file appears whole or not at all."""
    write_text(Path(path), replay.html())


def write_gif(replay: Replay, path: str | Path, fps: float = 8) -> None:
    """Write a GIF that repeats forever. The file appears whole or not at all.

    All pictures share one palette, and each contains only the pixels that change.

    Args:
        replay: the replay.
        path: path of the file.
        fps: turns per second, 0.1 to 50.

    Raises:
        ValueError: `fps` out of range.
    """
    check_number("fps of a GIF", fps, GIF_FPS)
    from PIL import Image

    cell = min(picture.default_cell(replay.rules), GIF_CELL)
    turns = len(replay.actions)
    sample = set(np.linspace(0, turns, 9).astype(int).tolist())
    states = (state for turn, state in enumerate(replay.states()) if turn in sample)
    sampled = [render.rgb_array(state, replay.rules, names=replay.names, cell_size=cell) for state in states]
    palette = Image.fromarray(np.concatenate(sampled)).quantize(GIF_COLOURS, dither=Image.Dither.NONE)

    def frames() -> Iterator[Image.Image]:
        # Pillow would find the pixels that change too (`optimize`), through a list of Python integers
        shown: NDArray[np.uint8] | None = None
        for image in pictures(replay, cell):
            colours = np.asarray(Image.fromarray(image).quantize(palette=palette, dither=Image.Dither.NONE))
            frame = Image.fromarray(colours if shown is None else np.where(colours == shown, np.uint8(GIF_COLOURS), colours))
            frame.putpalette(palette.getpalette() or [])
            shown = colours
            yield frame

    rest = frames()
    with replacing(Path(path)) as temporary:
        next(rest).save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=rest,
            transparency=GIF_COLOURS,
            disposal=1,  # leave the picture before in place
            optimize=False,
            duration=[round(1000 / fps)] * turns + [round(1000 * LINGER)],
            loop=0,
        )


def check_mp4() -> Any:
    """The module `imageio_ffmpeg`, which writes MP4.

    Raises:
        OSError: it is not installed, or finds no ffmpeg.
    """
    try:
        ffmpeg: Any = importlib.import_module("imageio_ffmpeg")
        ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError) as error:
        raise OSError(f"MP4 needs imageio-ffmpeg ({error}): pip install 'snake-pz[video]', or write a GIF") from None
    return ffmpeg


def write_mp4(replay: Replay, path: str | Path, fps: float = 8) -> None:
    """Write an H.264 film. The file appears whole or not at all.

    Args:
        replay: the replay.
        path: path of the file.
        fps: turns per second, 0.1 to 1000.

    Raises:
        OSError: imageio-ffmpeg is not installed, or finds no ffmpeg.
        ValueError: `fps` out of range.
    """
    check_number("fps", fps, FPS)
    ffmpeg = check_mp4()
    with replacing(Path(path)) as temporary:
        film = None
        for picture in pictures(replay):
            if film is None:
                film = ffmpeg.write_frames(str(temporary), picture.shape[1::-1], fps=fps, output_params=["-f", "mp4"])
                film.send(None)
            film.send(np.ascontiguousarray(picture))
        assert film is not None
        for _ in range(round(LINGER * fps)):
            film.send(np.ascontiguousarray(picture))
        film.close()
