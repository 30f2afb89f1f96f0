"""The families that we know, as data.  The more special come first: the first one whose name fits wins.

A new family needs one entry here and one row in `tests/unit/test_prompt_families.py`.
"""

from __future__ import annotations

from monkeycode_lsp.prompt.family import Family, Files, Markers

QWEN = Markers(
    prefix="<|fim_prefix|>",
    suffix="<|fim_suffix|>",
    middle="<|fim_middle|>",
    pad="<|fim_pad|>",
    repository="<|repo_name|>",
    separator="<|file_sep|>",
)
STARCODER_2 = Markers(
    prefix="<fim_prefix>",
    suffix="<fim_suffix>",
    middle="<fim_middle>",
    pad="<fim_pad>",
    repository="<repo_name>",
    separator="<file_sep>",
)
STARCODER_1 = Markers(
    prefix="<fim_prefix>",
    suffix="<fim_suffix>",
    middle="<fim_middle>",
    pad="<fim_pad>",
    repository="<reponame>",
    separator="<filename>",
)
_STARCODER_BARE = Markers(prefix="<fim_prefix>", suffix="<fim_suffix>", middle="<fim_middle>", pad="<fim_pad>")
_STARCODER_STOP = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<|endoftext|>")

REPOSITORY = Files(head="{REPO}{repository}\n", each="{SEP}{path}\n{text}\n", current="{SEP}{path}\n")
"""A whole repository, file after file, as most families saw it in training."""

FAMILIES: tuple[Family, ...] = (
    Family(
        name="codeqwen1.5",
        markers=Markers(
            prefix="<fim_prefix>",
            suffix="<fim_suffix>",
            middle="<fim_middle>",
            pad="<fim_pad>",
            repository="<reponame>",
            separator="<file_sep>",
        ),
        files=REPOSITORY,
        stop=(*_STARCODER_STOP, "<file_sep>", "<reponame>"),
        names=r"code-?qwen",
        architectures=("qwen2",),
    ),
    Family(
        name="qwen2.5-coder",
        markers=QWEN,
        files=REPOSITORY,
        stop=(
            "<|endoftext|>",
            "<|fim_prefix|>",
            "<|fim_suffix|>",
            "<|fim_middle|>",
            "<|fim_pad|>",
            "<|repo_name|>",
            "<|file_sep|>",
            "<|im_start|>",
            "<|im_end|>",
        ),
        names=r"qwen[\d.-]*coder",
        architectures=("qwen2", "qwen2moe", "qwen3", "qwen3moe", "qwen3next"),
    ),
    Family(
        name="starcoder2",
        markers=STARCODER_2,
        files=REPOSITORY,
        stop=(*_STARCODER_STOP, "<file_sep>", "<repo_name>", "<|end_of_text|>", "</fim_middle>"),
        names=r"starcoder-?2",
        architectures=("starcoder2",),
    ),
    Family(
        name="santacoder",
        markers=Markers(prefix="<fim-prefix>", suffix="<fim-suffix>", middle="<fim-middle>", pad="<fim-pad>"),
        stop=("<|endoftext|>", "<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<fim-pad>"),
        names=r"santa-?coder",
    ),
    Family(
        name="starcoder",
        markers=STARCODER_1,
        files=Files(
            head="{REPO}{repository}",
            each="{SEP}{path}\n{text}\n{<|endoftext|>}",
            current="{SEP}{path}\n",
        ),
        stop=_STARCODER_STOP,
        names=r"starcoder",
        architectures=("starcoder",),
    ),
    Family(
        name="stable-code",
        markers=_STARCODER_BARE,
        stop=_STARCODER_STOP,
        names=r"stable-?code",
        architectures=("stablelm",),
    ),
    Family(
        name="deepseek-coder",
        # The bars are U+FF5C and the low lines U+2581: ASCII look-alikes are ordinary text to these models.
        markers=Markers(
            prefix="<\uff5cfim\u2581begin\uff5c>",
            suffix="<\uff5cfim\u2581hole\uff5c>",
            middle="<\uff5cfim\u2581end\uff5c>",
        ),
        files=Files(each="#{path}\n{text}\n"),
        stop=(
            "<\uff5cfim\u2581begin\uff5c>",
            "<\uff5cfim\u2581hole\uff5c>",
            "<\uff5cfim\u2581end\uff5c>",
            "<\uff5cend\u2581of\u2581sentence\uff5c>",
            "<|EOT|>",
        ),
        names=r"deepseek-?coder",
    ),
    Family(
        name="codellama",
        markers=Markers(prefix="<PRE>", suffix="<SUF>", middle="<MID>"),
        fim="{PRE} {prefix} {SUF}{suffix} {MID}",
        stop=("<EOT>", "<PRE>", "<SUF>", "<MID>"),
        # The Python models and the 34B ones were never taught to fill in.
        names=r"code-?llama(?!.*(?:python|34b))",
    ),
    Family(
        name="codellama",
        # Where the vocabulary's own texts begin with its word mark, the blank before a marker is part of it.
        markers=Markers(prefix="\u2581<PRE>", suffix="\u2581<SUF>", middle="\u2581<MID>"),
        fim="{PRE} {prefix}{SUF}{suffix}{MID}",
        stop=("<EOT>", "<PRE>", "<SUF>", "<MID>"),
    ),
    Family(
        name="codegemma",
        markers=Markers(
            prefix="<|fim_prefix|>",
            suffix="<|fim_suffix|>",
            middle="<|fim_middle|>",
            separator="<|file_separator|>",
        ),
        files=Files(each="{SEP}{path}\n{text}\n", current="{SEP}{path}\n"),
        stop=("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>", "<end_of_turn>", "<eos>"),
        names=r"code-?gemma",
        architectures=("gemma",),
    ),
    Family(
        name="codestral",
        markers=Markers(prefix="[PREFIX]", suffix="[SUFFIX]"),
        order="spm",
        # There is a [MIDDLE] token in the vocabulary, but the models were trained without it.
        fim="{SUF}{suffix}{PRE}{prefix}",
        files=Files(each="+++++ {path}\n{text}\n\n", current="+++++ {path}\n", inside=True),
        stop=("[PREFIX]", "[SUFFIX]", "\n+++++ ", "</s>"),
        names=r"codestral",
    ),
    Family(
        name="granite-4",
        markers=Markers(prefix="<|fim_prefix|>", suffix="<|fim_suffix|>", middle="<|fim_middle|>", pad="<|fim_pad|>"),
        stop=("<|end_of_text|>", "<|fim_pad|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
        names=r"granite-?4(?!.*(?:embed|guardian|vision|speech))",
        architectures=("granite", "granitemoe", "granitehybrid"),
    ),
    Family(
        name="granite-3",
        markers=Markers(
            prefix="<fim_prefix>",
            suffix="<fim_suffix>",
            middle="<fim_middle>",
            pad="<fim_pad>",
            repository="<reponame>",
        ),
        files=Files(head="{REPO}{repository}\n", each="{comment}\n{text}\n"),
        stop=("<|end_of_text|>", *_STARCODER_STOP, "<reponame>"),
        names=r"granite-?(?:3(?=[.:-])|.*code)(?!.*(?:embed|guardian|vision|speech))",
        architectures=("granite", "granitemoe"),
    ),
    Family(
        name="seed-coder",
        markers=Markers(prefix="<[fim-prefix]>", suffix="<[fim-suffix]>", middle="<[fim-middle]>"),
        order="spm",
        stop=(
            "<[end\u2581of\u2581sentence]>",
            "<[PAD\u2581TOKEN]>",
            "<[SEP\u2581TOKEN]>",
            "<[begin\u2581of\u2581sentence]>",
            "<[fim-prefix]>",
            "<[fim-suffix]>",
            "<[fim-middle]>",
        ),
        names=r"seed-?coder",
    ),
    Family(
        name="mellum-2",
        markers=_STARCODER_BARE,
        stop=("<|endoftext|>", "<|im_end|>", "<fim_pad>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
        names=r"mellum-?2",
    ),
    Family(
        name="mellum-4b",
        markers=Markers(
            prefix="<fim_prefix>",
            suffix="<fim_suffix>",
            middle="<fim_middle>",
            pad="<fim_pad>",
            separator="<filename>",
        ),
        order="spm",
        files=Files(each="{SEP}{path}\n{text}\n", current="{SEP}{path}\n"),
        stop=("<filename>", *_STARCODER_STOP),
        names=r"mellum",
    ),
    Family(
        name="codegeex4",
        markers=Markers(prefix="<|code_prefix|>", suffix="<|code_suffix|>", middle="<|code_middle|>"),
        order="spm",
        lead="{<|user|>}\n",
        fim=("###PATH:{path}\n###LANGUAGE:{language}\n###MODE:BLOCK\n{SUF}{suffix}{PRE}{prefix}{MID}{<|assistant|>}\n"),
        files=Files(each="###REFERENCE:\n###PATH:{path}\n{text}\n"),
        stop=("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "<|user|>", "<|endoftext|>"),
        names=r"codegeex-?4",
        architectures=("chatglm",),
    ),
    Family(
        name="glm-4.5",
        markers=Markers(prefix="<|code_prefix|>", suffix="<|code_suffix|>", middle="<|code_middle|>"),
        stop=("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "<|user|>", "<|endoftext|>"),
        names=r"glm-?4[.-]?[5-9](?!\d|b)",
        architectures=("glm4moe",),
    ),
    Family(
        name="falcon-h1",
        markers=Markers(prefix="<|prefix|>", suffix="<|suffix|>", middle="<|middle|>"),
        stop=("<|prefix|>", "<|suffix|>", "<|middle|>", "<|end_of_text|>"),
        names=r"falcon-?h1",
        architectures=("falcon-h1",),
    ),
    Family(
        name="mercury-coder",
        markers=QWEN,
        files=Files(each="{SEP}{path}\n{text}\n", current="{SEP}{path}\n"),
        stop=("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"),
        names=r"mercury-?coder|^mercury$",
    ),
    Family(
        name="refact",
        markers=_STARCODER_BARE,
        order="spm",
        stop=_STARCODER_STOP,
        names=r"refact-?1[.-]?6b",
        architectures=("refact",),
    ),
)
