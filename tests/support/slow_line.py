"""A TCP line to a server that can be slow, be cut without a word, or break."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future

_CHUNK = 16 << 10


class SlowLine:
    """Forwards connections on loopback; use it as a context manager.

    Args:
        port: Where it leads.
        rate: Bytes a second in each direction; None is as fast as it goes.
    """

    def __init__(self, port: int, rate: float | None = None) -> None:
        self.host = "127.0.0.1"
        self.port = 0
        self.rate = rate
        self.carried = 0
        """Bytes that went towards the server."""
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready: Future[int] = Future()
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._over = asyncio.Event()

    def __enter__(self) -> SlowLine:
        self._thread.start()
        self.port = self._ready.result(60)
        return self

    def __exit__(self, *unused: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    def cut(self) -> None:
        """Carry nothing any more, as with the cable pulled: both sides hear nothing of it."""
        self._is_cut = True

    def mend(self) -> None:
        """Carry new connections again; those that were cut stay silent."""
        self._loop.call_soon_threadsafe(self._mend)

    def drop(self) -> None:
        """Break the connections that there are; both sides hear of it."""
        self._loop.call_soon_threadsafe(self._drop)

    def _mend(self) -> None:
        self._drop()
        self._is_cut = False

    def _drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._loop.close()

    async def _main(self) -> None:
        server = await asyncio.start_server(self._carry_both, self.host, 0, limit=_CHUNK)
        self._ready.set_result(server.sockets[0].getsockname()[1])
        await self._over.wait()
        server.close()
        self._drop()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry_both(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_connection(self.host, self._target, limit=_CHUNK)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, forth}
        await asyncio.gather(self._carry(reader, forth, True), self._carry(back, writer, False))

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_up: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                if self.rate:
                    await asyncio.sleep(len(data) / self.rate)
                if self._is_cut:
                    await asyncio.Event().wait()
                writer.write(data)
                await writer.drain()
                self.carried += len(data) if is_up else 0
        writer.close()
