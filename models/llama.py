"""llama.cpp behind Python names: models, contexts, passes. The only module that imports llama_cpp.

One thread of one process uses everything in here; llama.cpp's own threads work inside a pass, and
ctypes releases the interpreter's lock while they do.
"""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import llama_cpp
import llama_cpp.llama_cpp as api
import numpy as np
import numpy.typing as npt
from llama_cpp._ggml import libggml

from .batch import Batch
from .errors import LoadError, PassError
from .freed_memory import give_back_freed_memory
from .gguf_layout import shown
from .native_log import hear, last_errors
from .tree_shape import TreeShape

Logits = npt.NDArray[np.float32]

CACHE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "bf16": 30}
"""Names of KV cache types, and ggml's numbers for them."""


# The callback lives as long as the module: llama.cpp keeps the bare pointer, and would call a freed one.
@api.llama_log_callback
def _log_callback(level: int, text: bytes, _user_data: object) -> None:
    hear(level, text)


api.llama_log_set(_log_callback, ctypes.c_void_p(None))
api.llama_backend_init()


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


def build() -> str:
    """Which llama.cpp this is, and what of the processor it was built to use."""
    return f"{llama_cpp.__version__}: {api.llama_print_system_info().decode()}"


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
        # Mapped files would stay in memory beside the repacked copies of their weights.
        parameters.load_mode = api.LLAMA_LOAD_MODE_NONE

        @api.llama_progress_callback
        def callback(fraction: float, _user_data: object) -> bool:
            return on_progress(fraction)

        parameters.progress_callback = callback
        with last_errors() as errors:
            self._model: Any = api.llama_model_load_from_file(bytes(path), parameters)
        if not self._model:
            raise LoadError(f"{shown(path)} could not be loaded: {errors.reason()}")
        give_back_freed_memory()
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
        """Whether its caches can forget any of their last tokens; recurrent and hybrid models cannot."""
        return not (api.llama_model_is_recurrent(self._model) or api.llama_model_is_hybrid(self._model))

    def ends_generation(self, token: int) -> bool:
        """Whether this token ends an answer."""
        return bool(api.llama_vocab_is_eog(self._vocabulary, token))

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool = True) -> list[int]:
        """Token ids of a text, with BOS where the vocabulary wants it if `add_special`.

        A text that spells BOS out itself, as most chat templates do, gets no second one. EOS is not added,
        though some vocabularies want it: what is to be gone on with has not ended.
        """
        data = text.encode("utf-8", errors="replace")
        room = len(data) + 8
        while True:
            buffer = (ctypes.c_int32 * room)()
            # llama.cpp aborts where it is to add a token that the vocabulary does not have.
            count = api.llama_tokenize(self._vocabulary, data, len(data), buffer, room, False, parse_special)
            if count >= 0:
                break
            room = -count
        tokens = list(buffer[:count])
        adds_bos = add_special and self.bos >= 0 and api.llama_vocab_get_add_bos(self._vocabulary)
        return [self.bos, *tokens] if adds_bos and tokens[:1] != [self.bos] else tokens

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

    `tokens` is what the cache holds, exactly, after every call; a tree is not held until `keep` says which
    of its nodes are, and a call that does not say drops all of it.
    """

    def __init__(
        self,
        model: Model,
        *,
        size: int,
        threads: int,
        chunk: int = 512,
        rows: int = 33,
        branches: int = 1,
        rollback: int = 0,
        cache_type_k: str = "f16",
        cache_type_v: str = "f16",
        flash_attn: Literal["auto", "on", "off"] = "auto",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Make a cache of `size` tokens.

        A pass takes at most `chunk` tokens and gives at most `rows` rows of logits; the tree of a pass has
        at most `branches` leaves. Where the model has recurrent layers, states are kept to forget up to
        `rollback` tokens of a pass, if llama.cpp can.

        Raises:
            LoadError: llama.cpp would not make it, mostly for want of memory.
        """
        parameters = api.llama_context_default_params()
        parameters.n_ctx = size
        parameters.n_batch = parameters.n_ubatch = max(chunk, rows)
        # A branch is a sequence of llama.cpp's; in one unified cache sequences share cells.
        parameters.n_seq_max = branches
        parameters.kv_unified = branches > 1
        parameters.n_rs_seq = rollback
        parameters.n_outputs_max = max(rows, branches)  # llama.cpp aborts on fewer outputs than sequences
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.type_k = CACHE_TYPES[cache_type_k]
        parameters.type_v = CACHE_TYPES[cache_type_v]
        parameters.flash_attn_type = {"auto": -1, "off": 0, "on": 1}[flash_attn]
        # A sliding-window cache that is not full-sized forgets positions a truncation would need again.
        parameters.swa_full = True
        parameters.no_perf = True
        with last_errors() as errors:
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
            "rollback": rollback,
            "cache_type_k": cache_type_k,
            "cache_type_v": cache_type_v,
            "flash_attn": flash_attn,
            "clock": clock,
        }
        self.model = model
        self.size = size
        self.chunk = parameters.n_batch
        self.rows = rows
        self.branches = branches
        self.rollback = size if model.drops_suffixes else int(api.llama_n_rs_seq(self._context))
        """How many tokens of a draft can be forgotten again."""
        self.tokens: list[int] = []
        self.pass_s = 0.0
        """Seconds spent in passes so far."""
        self.passes: Counter[int] = Counter()
        """Passes so far, by the tokens in them."""
        self._clock = clock
        self._memory: Any = api.llama_get_memory(self._context)
        self._batch = Batch(self.chunk, branches)
        self._structure: Any = api.llama_batch(**self._batch.pointers())
        self._tree: tuple[list[int], TreeShape] | None = None
        # Of a recurrent model: the tokens in its state, and for how many of the last ones an earlier
        # state is kept. llama.cpp keeps states of the last pass only, and goes back to one of them once.
        self._state_tokens = self._earlier_states = 0

    def decode(self, tokens: Sequence[int], rows: int) -> Logits:
        """Run one pass over `tokens` after what the cache holds.

        Returns:
            The logits of the last `rows` of them, float32 (rows, vocabulary size): a view into
            llama.cpp's own buffer, true until the next pass.

        Raises:
            PassError: the tokens do not fit, or llama.cpp would not decode them; the cache is unchanged.
        """
        held = self._room(len(tokens), rows)
        self._batch.fill(tokens, held, rows)
        logits = self._pass(len(tokens), rows)
        self.tokens.extend(tokens)
        return logits

    def decode_tree(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """Run one pass over a tree of tokens: each sees what the cache holds, its ancestors and itself.

        `parents[i]` is the index of the i-th token's parent, before i, or -1 where the token follows what
        the cache holds. Cells are laid in the order given: a chain, then what branches off it, keeps the
        chain's cells in a row. `keep` has to say next which nodes stay.

        Returns:
            The logits of all tokens, float32 (tokens, vocabulary size): a view as `decode` gives one.

        Raises:
            PassError: the parents make no tree or too many branches, the tokens do not fit, or llama.cpp
                would not decode them; the cache is unchanged.
        """
        held = self._room(len(tokens), len(tokens))
        try:
            shape = TreeShape.of(parents)
        except ValueError as error:
            raise PassError(f"these parents make no tree: {error}") from None
        if len(parents) != len(tokens) or shape.branches > self.branches:
            raise PassError(
                f"a tree of {len(tokens)} tokens, {len(parents)} parents and {shape.branches} branches was "
                f"asked of a context for {self.branches}"
            )
        if len(tokens) - 1 > self.rollback:
            raise PassError(
                f"a draft of {len(tokens) - 1} tokens was asked of a context that forgets {self.rollback}"
            )
        for branch in range(1, shape.branches):
            api.llama_memory_seq_cp(self._memory, 0, branch, -1, -1)
        self._batch.fill(tokens, held, len(tokens), shape)
        self._tree = list(tokens), shape
        return self._pass(len(tokens), len(tokens))

    def keep(self, path: Sequence[int]) -> None:
        """Hold the tokens of the last tree on this path from a root downwards, and forget its others.

        Raises:
            PassError: there is no such path; nothing has changed.
        """
        if self._tree is None and not path:
            return
        tokens, shape = self._tree or ([], TreeShape.of(()))
        if not shape.is_path(path):
            raise PassError(f"the last tree has no path {list(path)}")
        self._tree = None
        if path and (branch := shape.firsts[path[-1]]) > 0:
            api.llama_memory_seq_rm(self._memory, 0, -1, -1)
            api.llama_memory_seq_cp(self._memory, branch, 0, -1, -1)
        for branch in range(1, shape.branches):
            api.llama_memory_seq_rm(self._memory, branch, -1, -1)
        self.tokens.extend(tokens[node] for node in path)
        self._forget_after(len(self.tokens))
        if path and not self.tokens:
            raise PassError("llama.cpp would not forget what was drafted, and all of the text was forgotten")

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` tokens.

        A model that cannot forget so many forgets everything: `tokens` says what is left.
        """
        self.keep(())
        if length < len(self.tokens):
            self._forget_after(length)

    def bytes_per_token(self) -> float:
        """Bytes of cache that a token takes, by those that are held."""
        return api.llama_state_seq_get_size(self._context, ctypes.c_int32(0)) / max(len(self.tokens), 1)

    def crowd(self) -> None:
        """Copy what is held into every other branch, in cells that the sequence does not see.

        What is decoded next lies as many cells further on, as in a longer text, and no tree fits any more.

        Raises:
            PassError: there are too few cells.
        """
        size = api.llama_state_seq_get_size(self._context, ctypes.c_int32(0))
        state = (ctypes.c_uint8 * size)()
        api.llama_state_seq_get_data(self._context, state, size, ctypes.c_int32(0))
        for branch in range(1, self.branches):
            if not api.llama_state_seq_set_data(self._context, state, size, ctypes.c_int32(branch)):
                raise PassError(f"{self.size} cells hold no {self.branches} copies")

    def fresh(self, size: int, *, branches: int | None = None) -> Context:
        """An empty context of another size, and for more branches if told, otherwise alike."""
        return Context(self.model, size=size, branches=branches or self.branches, **self._settings)

    def close(self) -> None:
        """Free the cache."""
        if self._context:
            api.llama_free(self._context)
            self._context = None

    def _room(self, count: int, rows: int) -> int:
        """How many tokens are held, once it is sure that a pass of `count` fits after them."""
        self.keep(())
        held = len(self.tokens)
        if not 0 < count <= self.chunk or not 0 <= rows <= min(count, self.rows):
            raise PassError(f"a pass takes 1 to {self.chunk} tokens and gives up to {self.rows} rows")
        if held + count > self.size:
            raise PassError(f"{count} more tokens do not fit: the context holds {held} of {self.size}")
        return held

    def _pass(self, count: int, rows: int) -> Logits:
        """Run a pass over the batch's first `count` tokens, or leave the cache as it was."""
        self._structure.n_tokens = count
        self._state_tokens, self._earlier_states = len(self.tokens) + count, 0
        started = self._clock()
        with last_errors() as errors:
            status = api.llama_decode(self._context, self._structure)
            api.llama_synchronize(self._context)
        self.pass_s += self._clock() - started
        self.passes[count] += 1
        if status != 0:
            self.keep(())
            self._forget_after(len(self.tokens))
            raise PassError(f"llama.cpp could not run a pass of {count} tokens: {errors.reason()}")
        self._earlier_states = min(count - 1, self.rollback)
        if rows == 0:
            return np.empty((0, self.model.vocabulary_size), np.float32)
        pointer = api.llama_get_logits(self._context)
        return np.ctypeslib.as_array(pointer, shape=(rows, self.model.vocabulary_size))

    def _forget_after(self, length: int) -> None:
        dropped = self._state_tokens - length
        possible = self.model.drops_suffixes or dropped <= self._earlier_states or length == 0
        if possible and api.llama_memory_seq_rm(self._memory, 0, length, -1):
            del self.tokens[length:]
        else:
            api.llama_memory_clear(self._memory, True)
            self.tokens.clear()
        if dropped:
            self._state_tokens, self._earlier_states = len(self.tokens), 0
