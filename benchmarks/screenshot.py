"""Make the README's picture: a real chat with a real pair, its answer coloured by origin.

python benchmarks/screenshot.py TARGET DRAFT OUT.svg
"""

import asyncio
import sys

from specchat.app.decoding.settings import Sampling
from specchat.app.history import IN_MEMORY, History
from specchat.app.process import EngineProcess
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions
from specchat.tui.app import SpecchatApp

FIRST = "Write a Python function that says whether a year is a leap year."
SECOND = (
    "Now as JSON: a list of the next five leap years after 2026, each with year and weekday of 29 February."
)


async def main(target: str, draft: str, out: str) -> None:
    engine = EngineProcess()
    answer = AnswerOptions(Sampling(temperature=0.0), Drafting("always"), 300)
    app = SpecchatApp(engine, LoadOptions(target, draft), answer, history=History(IN_MEMORY))
    async with app.run_test(size=(132, 40)) as pilot:

        async def until(phase: str) -> None:
            while app.session.phase != phase:
                await pilot.pause(0.2)

        await until("ready")
        await pilot.press("ctrl+o")
        for prompt in (FIRST, SECOND):
            app.prompt.insert(prompt)
            await pilot.press("enter")
            await until("answering")
            await until("ready")
        await pilot.pause(1.0)
        app.save_screenshot(out)
    engine.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
