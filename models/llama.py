"""llama.cpp behind Python names: models, contexts, passes. The only module that imports llama_cpp.

One thread of one process uses everything in here; llama.cpp's own threads work inside a pass, and
ctypes releases the interpreter's lock while they do.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import llama_cpp.llama_cpp as api
import numpy as np
import numpy.typing as npt
from llama_cpp._ggml import libggml

from .errors import LoadError, PassError

Logits = npt.NDArray[np.float32]

CACHE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "bf16": 30}
"""Names of KV cache types, and ggml's numbers for them."""

FILE_TYPES = {"f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q4_k_m": 15, "q5_k_m": 17}
"""Names of quantizations that `quantize` can write, and llama.cpp's numbers for them."""

log = logging.getLogger("specchat.llama.cpp")
log.addHandler(logging.NullHandler())  # silent unless someone listens

_LEVELS = {1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}


# The callback lives as long as the module: llama.cpp keeps the bare pointer, and would call a freed one.
@api.llama_log_callback
def _log_callback(level: int, text: bytes, _user_data: object) -> None:
    line = text.decode("utf-8", errors="replace").rstrip()
    if line.strip("."):  # a run of dots is llama.cpp's own progress bar
        log.log(_LEVELS.get(level, logging.DEBUG), "%s", line)


api.llama_log_set(_log_callback, ctypes.c_void_p(None))
api.llama_backend_init()


class _LastErrors(logging.Handler):
    """Keeps llama.cpp's error lines, which hold the reason when a call returns nothing."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def reason(self) -> str:
        """The most telling line, without the C function's name in front."""
        if not self.lines:
            return "llama.cpp gave no reason"
        told = next((line for line in self.lines if "error" in line), self.lines[0])
        return told.split(": ", 1)[-1].removeprefix("error loading model: ")


@contextlib.contextmanager
def _last_errors() -> Generator[_LastErrors]:
    handler = _LastErrors()
    log.addHandler(handler)
    try:
        yield handler
    finally:
        log.removeHandler(handler)


def devices(gpu_layers: int) -> tuple[str, ...]:
    """Names of the devices that run the layers: the GPUs when layers go there, else the processor."""
    described: dict[int, list[str]] = {}
    libggml.ggml_backend_dev_get.restype = ctypes.c_void_p
    libggml.ggml_backend_dev_description.restype = ctypes.c_char_p
    for index in range(int(libggml.ggml_backend_dev_count())):
        device = ctypes.c_void_p(libggml.ggml_backend_dev_get(ctypes.c_size_t(index)))
        kind = int(libggml.ggml_backend_dev_type(device))
        described.setdefault(kind, []).append(libggml.ggml_backend_dev_description(device).decode())
    processors = described.get(0, ["CPU"])
    graphics = described.get(1, []) + described.get(2, [])
    return tuple(graphics if graphics and gpu_layers != 0 else processors[:1])


def quantize(source: Path, destination: Path, file_type: str) -> None:
    """Write a requantized copy of a GGUF with llama.cpp's quantizer; `file_type` is a key of `FILE_TYPES`.

    Raises:
        LoadError: llama.cpp would not read the source or write the destination.
    """
    parameters = api.llama_model_quantize_default_params()
    parameters.ftype = FILE_TYPES[file_type]
    parameters.allow_requantize = True
    parameters.pure = True
    with _last_errors() as errors:
        status = api.llama_model_quantize(
            str(source).encode(), str(destination).encode(), ctypes.pointer(parameters)
        )
    if status != 0:
        raise LoadError(f"{source} could not be requantized to {file_type}: {errors.reason()}")


class Model:
    """The weights and the vocabulary of one GGUF file, loaded."""

    def __init__(
        self,
        path: Path,
        *,
        gpu_layers: int = -1,
        on_progress: Callable[[float], bool] = lambda _fraction: True,
    ) -> None:
        """Load a file; `on_progress` is told the fraction read and stops the load by returning False.

        Raises:
            LoadError: llama.cpp would not load it; the message holds its own reason.
        """
        parameters = api.llama_model_default_params()
        parameters.n_gpu_layers = gpu_layers

        @api.llama_progress_callback
        def callback(fraction: float, _user_data: object) -> bool:
            return on_progress(fraction)

        parameters.progress_callback = callback
        with _last_errors() as errors:
            self._model: Any = api.llama_model_load_from_file(str(path).encode(), parameters)
        if not self._model:
            raise LoadError(f"{path} could not be loaded: {errors.reason()}")
        self.path = path
        self._vocabulary: Any = api.llama_model_get_vocab(self._model)
        self._piece_buffer = ctypes.create_string_buffer(64)
        self.vocabulary_size = int(api.llama_vocab_n_tokens(self._vocabulary))
        self.size_bytes = int(api.llama_model_size(self._model))
        self.parameters = int(api.llama_model_n_params(self._model))
        self.train_context = int(api.llama_model_n_ctx_train(self._model))
        self.bos = int(api.llama_vocab_bos(self._vocabulary))
        self.eos = int(api.llama_vocab_eos(self._vocabulary))

    @property
    def handle(self) -> Any:
        """llama.cpp's pointer to the model."""
        return self._model

    @property
    def drops_suffixes(self) -> bool:
        """Whether its caches can forget their last tokens; recurrent and hybrid models cannot."""
        return not (api.llama_model_is_recurrent(self._model) or api.llama_model_is_hybrid(self._model))

    def ends_generation(self, token: int) -> bool:
        """Whether this token ends an answer."""
        return bool(api.llama_vocab_is_eog(self._vocabulary, token))

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool = True) -> list[int]:
        """Token ids of a text, with BOS where the vocabulary wants it if `add_special`.

        A text that spells BOS out itself, as most chat templates do, gets no second one.
        """
        data = text.encode("utf-8", errors="replace")
        size = len(data) + 8
        buffer = (ctypes.c_int32 * size)()
        count = api.llama_tokenize(
            self._vocabulary, data, len(data), buffer, size, add_special, parse_special
        )
        if count < 0:
            buffer = (ctypes.c_int32 * -count)()
            count = api.llama_tokenize(
                self._vocabulary, data, len(data), buffer, -count, add_special, parse_special
            )
        tokens = list(buffer[:count])
        return tokens[1:] if tokens[:2] == [self.bos, self.bos] and add_special else tokens

    def piece(self, token: int, *, special: bool = False) -> bytes:
        """The bytes that a token stands for; a control token has none unless `special`."""
        size = api.llama_token_to_piece(
            self._vocabulary, token, self._piece_buffer, len(self._piece_buffer), 0, special
        )
        if size < 0:
            self._piece_buffer = ctypes.create_string_buffer(-size)
            size = api.llama_token_to_piece(
                self._vocabulary, token, self._piece_buffer, len(self._piece_buffer), 0, special
            )
        return self._piece_buffer.raw[:size]

    def close(self) -> None:
        """Free the weights; the model's contexts have to be closed before."""
        if self._model:
            api.llama_model_free(self._model)
            self._model = None

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Context:
    """One sequence's KV cache over a model, and the passes that fill it.

    `tokens` is what the cache holds, exactly, after every call.
    """

    def __init__(
        self,
        model: Model,
        *,
        size: int,
        threads: int,
        chunk: int = 512,
        rows: int = 33,
        cache_type_k: str = "f16",
        cache_type_v: str = "f16",
        flash_attn: Literal["auto", "on", "off"] = "auto",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Make a cache of `size` tokens.

        A pass takes at most `chunk` tokens and gives at most `rows` rows of logits.

        Raises:
            LoadError: llama.cpp would not make it, mostly for want of memory.
        """
        parameters = api.llama_context_default_params()
        parameters.n_ctx = size
        parameters.n_batch = parameters.n_ubatch = max(chunk, rows)
        parameters.n_seq_max = 1
        parameters.n_outputs_max = rows
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.type_k = CACHE_TYPES[cache_type_k]
        parameters.type_v = CACHE_TYPES[cache_type_v]
        parameters.flash_attn_type = {"auto": -1, "off": 0, "on": 1}[flash_attn]
        # A sliding-window cache that is not full-sized forgets positions a truncation would need again.
        parameters.swa_full = True
        parameters.no_perf = True
        with _last_errors() as errors:
            self._context: Any = api.llama_init_from_model(model.handle, parameters)
        if not self._context:
            reason = errors.reason()
            hint = " (try a smaller --ctx-size)" if "memory" in reason or "alloc" in reason else ""
            raise LoadError(
                f"{model.path} was loaded, but not a context of {size} tokens for it: {reason}{hint}"
            )
        self._settings: dict[str, Any] = {
            "threads": threads,
            "chunk": chunk,
            "rows": rows,
            "cache_type_k": cache_type_k,
            "cache_type_v": cache_type_v,
            "flash_attn": flash_attn,
            "clock": clock,
        }
        self.model = model
        self.size = size
        self.chunk = parameters.n_batch
        self.rows = rows
        self.tokens: list[int] = []
        self.pass_s = 0.0
        """Seconds spent in passes so far."""
        self._clock = clock
        self._memory: Any = api.llama_get_memory(self._context)
        self._batch = api.llama_batch_init(self.chunk, 0, 1)
        self._fields = _BatchFields(self._batch, self.chunk)

    def decode(self, tokens: Sequence[int], rows: int) -> Logits:
        """Run one pass over `tokens` after what the cache holds.

        Returns:
            The logits of the last `rows` of them, float32 (rows, vocabulary size): a view into
            llama.cpp's own buffer, true until the next pass.

        Raises:
            PassError: the tokens do not fit, or llama.cpp would not decode them; the cache is unchanged.
        """
        count, held = len(tokens), len(self.tokens)
        if not 0 < count <= self.chunk or not 0 <= rows <= min(count, self.rows):
            raise PassError(f"a pass takes 1 to {self.chunk} tokens and gives up to {self.rows} rows")
        if held + count > self.size:
            raise PassError(f"{count} more tokens do not fit: the context holds {held} of {self.size}")
        self._fields.fill(tokens, held, rows)
        self._batch.n_tokens = count
        started = self._clock()
        with _last_errors() as errors:
            status = api.llama_decode(self._context, self._batch)
            api.llama_synchronize(self._context)
        self.pass_s += self._clock() - started
        if status != 0:
            api.llama_memory_seq_rm(self._memory, 0, held, -1)
            raise PassError(f"llama.cpp could not run a pass of {count} tokens: {errors.reason()}")
        self.tokens.extend(tokens)
        if rows == 0:
            return np.empty((0, self.model.vocabulary_size), np.float32)
        pointer = api.llama_get_logits(self._context)
        return np.ctypeslib.as_array(pointer, shape=(rows, self.model.vocabulary_size))

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` tokens.

        A model that cannot forget a suffix forgets everything: `tokens` says what is left.
        """
        if length >= len(self.tokens):
            return
        if api.llama_memory_seq_rm(self._memory, 0, length, -1):
            del self.tokens[length:]
        else:
            api.llama_memory_clear(self._memory, True)
            self.tokens.clear()

    def fresh(self, size: int) -> Context:
        """An empty context of another size, otherwise alike."""
        return Context(self.model, size=size, **self._settings)

    def close(self) -> None:
        """Free the cache."""
        if self._context:
            api.llama_batch_free(self._batch)
            api.llama_free(self._context)
            self._context = None


class _BatchFields:
    """numpy views over a llama_batch's arrays, so that filling one is a few slices."""

    def __init__(self, batch: Any, size: int) -> None:
        self._token = np.ctypeslib.as_array(batch.token, shape=(size,))
        self._position = np.ctypeslib.as_array(batch.pos, shape=(size,))
        self._output = np.ctypeslib.as_array(batch.logits, shape=(size,))
        self._offsets = np.arange(size, dtype=np.int32)
        np.ctypeslib.as_array(batch.n_seq_id, shape=(size,))[:] = 1
        for index in range(size):
            batch.seq_id[index][0] = 0

    def fill(self, tokens: Sequence[int], start: int, rows: int) -> None:
        """Set the batch to these tokens from position `start` on, with logits for the last `rows`."""
        count = len(tokens)
        self._token[:count] = tokens
        np.add(self._offsets[:count], start, out=self._position[:count])
        self._output[: count - rows] = 0
        self._output[count - rows : count] = 1
