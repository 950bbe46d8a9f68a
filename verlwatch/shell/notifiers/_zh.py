"""A message in Chinese, put together anew from its fields: sentences are not translated.

Our own sentences of the evidence are Chinese too; what quotes a log stays.  What has no words here, a rule or a label
that is new, stays English.  Names of phases are verl's own, which people search their logs for, with Chinese beside.
"""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

from verlwatch.core.incidents import quantity
from verlwatch.core.phases import THROUGHPUT
from verlwatch.core.types import Message
from verlwatch.shell.notifiers import _zh_worded
from verlwatch.shell.notifiers._zh_phases import PHASES
from verlwatch.shell.notifiers._zh_rule import Rule, with_units

REASONS: Mapping[str, str] = {
    "opened": "新事件",
    "updated": "有变化",
    "escalated": "升级",
    "repeated": "仍在持续",
    "reopened": "再次出现",
    "flapping": "反复波动",
    "finished": "训练完成",
    "resolved": "已恢复",
    "accepted": "已接受",
    "run ended": "训练已结束",
    "expired": "已过期",
}
LABELS: Mapping[str, str] = {
    "Since step": "起始步",
    "At step": "当前步",
    "Ratio": "倍数",
    "Ratio at equal work": "同等工作量下的倍数",
    "Baseline": "基线",
    "Took": "耗时",
    "New level": "当前水平",
    "Lost so far": "已损失",
    "Steps": "步数范围",
    "Told at step": "告知于",
    "Worst ratio": "最高倍数",
    "Slow": "变慢时",
    "Noisy": "波动",
    "Cost": "共损失",
    "GPU-hours lost": "损失的 GPU 小时",
    "Adds to the step": "每步增加",
    "More work adds": "工作量增加带来",
    "Where": "位置",
    "Likely cause": "可能原因",
    "Configured": "当前配置",
    "Accepted by": "由谁接受",
}
_PHRASES = (
    (re.compile(r" \(first told (.+) ago\)$"), r"（\1前首次告知）"),
    (re.compile(r"^a person$"), "人工"),
    (re.compile(r" in ([0-9]+) episodes$"), r"（共 \1 次）"),
    (re.compile(r" \((×[0-9.]+) in seconds\)$"), r"（按秒数为 \1）"),
    (re.compile(r" \(([0-9]+%) of a step\)"), r"（相当于一步的 \1）"),
    (re.compile(r", all of what the step lost$"), "，即变慢的全部"),
    (re.compile(r" besides, which is no fault$"), "，另计，不属故障"),
    (re.compile(r", ([0-9]+%) of what the step lost$"), r"，占变慢部分的 \1"),
    (re.compile(r", ([0-9.]+) GPU-hours"), r"，\1 GPU 小时"),
    (re.compile(r"; ([0-9.]+) GPU-hours a day if it goes on$"), r"；若持续，每天 \1 GPU 小时"),
    (re.compile(r"^(ranks? .*?) on (?=\S)"), r"\1，主机 "),
    (re.compile(r" and ([0-9]+) more(?= |$)"), r" 等（另 \1 个）"),
)
"""How values are put together from parts, in the order in which they are looked for."""
_N = r"([-+0-9.e]+)"
_EVIDENCE = tuple(
    (re.compile(pattern), chinese_words)
    for pattern, chinese_words in (
        (
            rf"step ([0-9]+): ([\w/]+) {_N} (\S+), expected {_N} \4 for its work",
            r"第 \1 步：\2 为 \3 \4，按其工作量应为 \5 \4",
        ),
        (rf"step ([0-9]+): {_N} s, expected {_N} s for its work", r"第 \1 步：\2 s，按其工作量应为 \3 s"),
        (rf"since step ([0-9]+): {_N} (\S+) instead of {_N} \3", r"自第 \1 步起：\2 \3，此前为 \4 \3"),
        (rf"adds {_N} s to a step of {_N} s \(([-+0-9.]+%)\)", r"使一步（\2 s）增加 \1 s（\3）"),
        (rf"{_N} ms per token, expected {_N} ms", r"每 token \1 ms，应为 \2 ms"),
        (
            r"this trainer is asynchronous: gen is the time it waits for samples",
            "该训练为异步：gen 是等待样本的时间",
        ),
    )
)
"""Sentences of the rules, whole: a line of a log that says more is a quotation."""
_KNOWN = re.compile(
    r"Known\? (?:(verlwatch silence add .+), or|To hear no more of it) until it grows: (verlwatch accept \S+)"
)
_SINCE = "{phase}{again}自第 {onset} 步起为 {after}，此前为 {before}（×{ratio:.2f}）"
_AT = "{phase}{again}在第 {step} 步耗时 {after}，应为 {before}（×{ratio:.2f}）"
_HOST = "若反复出现，检查主机：同节点的其他任务、存储、网络。"


RULES: Mapping[str, Rule] = {
    "limit": Rule(
        "{phase}{again}在第 {step} 步耗时 {after}，超过上限 {before}",
        "{phase}耗时 {after}，超过配置（detection.limits）的上限 {before}",
        "",
        {},
    ),
    "early_slow": Rule(
        _AT,
        "{phase}耗时是此前几步中位数的 {ratio:.1f} 倍（尚无基线）",
        "未知（依据的步数很少，仅为猜测）",
        {"": ("依据的步数还少：除非一直这么慢，先多看几步再处理。",)},
    ),
    "phase_spike": Rule(
        _AT,
        "{phase}耗时是其工作量应需时间的 {ratio:.1f} 倍",
        "拖尾，或主机上有其他任务（仅凭一步的猜测）",
        {
            "gen": ("单独一步变慢多半是拖尾：看该步的最长回答和抢占（preemption）。", _HOST),
            "reward": ("检查奖励服务或沙箱：超时、重试、排队。", _HOST),
            "": (_HOST,),
        },
    ),
    "metric_shift": Rule(
        _SINCE,
        "自第 {onset} 步起{phase}为之前的 {ratio:.2f} 倍，目前为 {after}",
        "",
        {
            THROUGHPUT: ("每步耗时与之前相同，但 token 变少：看被过滤或中止的样本。",),
            **dict.fromkeys(
                ("mfu_actor", "mfu_critic", "mfu_actor_infer"),
                (
                    "该阶段按 token 计的耗时与之前相同，说明计入的 FLOPs 变少："
                    "看序列长度、packing 和 micro batch 大小。",
                ),
            ),
            "cpu_memory_used_gb": (
                "在进程被杀之前，看主机上什么在堆积："
                "数据加载进程、offload 或锁页的缓冲、Ray 的 object store、其他任务。",
            ),
            "": (
                "在显存耗尽之前，看最长的序列和 micro batch 大小；这是进程启动以来 PyTorch 分配器见过的峰值，"
                "不含 vLLM 显存池和 NCCL。",
            ),
        },
    ),
    "phase_noise": Rule(
        "{phase}{again}自第 {onset} 步起波动变大：{after}，此前为 {before}（×{ratio:.2f}）",
        "自第 {onset} 步起，同等工作量下{phase}的波动是之前的 {ratio:.1f} 倍",
        "主机上时有时无的干扰（仅为猜测）",
        {"": ("看主机上有什么时有时无：其他任务、频率、共享的存储或网络。",)},
    ),
    "phase_drift": Rule(
        _SINCE,
        "约自第 {onset} 步起，同等工作量下{phase}越来越慢，目前是之前的 {ratio:.2f} 倍",
        "某种东西在堆积或占满（有可能：是一点点变慢的）",
        {
            "": (
                "看什么在占满或升温：显存碎片、缓存、主机内存、磁盘、因发热而降低的频率。",
                "若重启后恢复原速，说明进程内有东西在堆积。",
            )
        },
    ),
    "phase_shift": Rule(
        _SINCE,
        "自第 {onset} 步起，同等工作量下{phase}的耗时是之前的 {ratio:.2f} 倍",
        "变慢的阶段自身（有可能：其他阶段与之前相同）",
        {
            "gen": (
                "与上一次正常的训练比较 rollout.tensor_model_parallel_size、rollout.gpu_memory_utilization、"
                "rollout.max_num_seqs。",
                "看 KV cache 是否已满（抢占），是否有一张 GPU 的显存占用高于其他。",
            ),
            "old_log_prob": (
                "检查通信与显存带宽：参数 offload 与序列并行同时开启、log_prob_micro_batch_size_per_gpu。",
            ),
            "update_actor": ("检查网络（NCCL 网卡、InfiniBand）、offload 和 ppo_micro_batch_size_per_gpu。",),
            "": ("看那一步主机上变了什么：其他任务、频率、存储、网络。",),
        },
    ),
    "step_slow": Rule(
        _SINCE,
        "自第 {onset} 步起，同等工作量下{phase}是之前的 {ratio:.2f} 倍，没有任何阶段能解释",
        "计时阶段之外的工作，如数据加载或日志（很可能：没有任何阶段能解释）",
        {"": ("时间花在计时阶段之外：数据加载、日志、指标，或训练主进程所在主机的停顿。",)},
    ),
    "all_slow": Rule(
        "各阶段{again}自第 {onset} 步起同时变慢：共 {after}，此前为 {before}（×{ratio:.2f}）",
        "自第 {onset} 步起各阶段同时变慢，合计是之前的 {ratio:.2f} 倍",
        "主机或网络（很可能：各阶段同时变慢）",
        {
            "": (
                "看主机而不是某个阶段：频率与降频（nvidia-smi -q -d PERFORMANCE）、其他任务、网络、存储。",
                "找出慢的节点：最慢的一个会拖住其他所有节点。",
            )
        },
    ),
}
"""By the name of the rule."""


def chinese(message: Message) -> Message:
    """The same message in Chinese."""
    if message.rule in _zh_worded.RULES:
        return _worded(message)
    test = "【测试】" if message.title.startswith("TEST ") else ""
    return replace(
        message,
        title=test + (_title(message) or message.title),
        summary=("这是对接收端的测试，并无异常。" if test else "") + (_summary(message) or message.summary),
        facts=tuple((LABELS.get(label, label), _value(message, label, value)) for label, value in message.facts),
        evidence=tuple(map(_evidence, message.evidence)),
        advice=_advice(message),
        language="zh",
    )


def _worded(message: Message) -> Message:
    """Of a rule that words its messages itself."""
    labels = {**LABELS, **_zh_worded.LABELS}
    return replace(
        message,
        title=_zh_worded.title(message),
        summary=_zh_worded.summary(message),
        facts=tuple((labels.get(label, label), _zh_worded.fact(label, value)) for label, value in message.facts),
        evidence=tuple(map(_zh_worded.evidence, message.evidence)),
        advice=tuple(map(_zh_worded.advice, message.advice)),
        language="zh",
    )


def phase_name(phase: str) -> str:
    """The name as verl has it, with the Chinese behind it; with a blank where there is none."""
    return f" {phase}（{PHASES[phase]}）" if phase in PHASES else f" {phase} "


def _evidence(line: str) -> str:
    for pattern, chinese_words in _EVIDENCE:
        if found := pattern.fullmatch(line):
            return with_units(found.expand(chinese_words))
    return _zh_worded.evidence(line)


def _value(message: Message, label: str, value: str) -> str:
    if label == "Configured":
        return value
    if label == "Likely cause":
        return (RULES[message.rule].cause if message.rule in RULES else "") or value
    for pattern, chinese_words in _PHRASES:
        value = pattern.sub(chinese_words, value)
    return with_units(value)


def _title(message: Message) -> str | None:
    rule, fields = RULES.get(message.rule), _fields(message)
    if rule is None or fields is None:
        return None
    facts = dict(message.facts)
    match message.reason:
        case "resolved":
            steps, worst = facts.get("Steps", "").split(" to "), facts.get("Worst ratio")
            since = f"自第 {int(steps[-1]) + 1} 步起" if steps[-1].isdigit() else ""
            was = f"最高 {worst}，" if worst else ""
            text = f"{{phase}}{since}恢复正常（{was}基线 {{before}}）"
        case "accepted" if "Accepted by" in facts:
            text = "{phase}为 {after}（此前 {before}）：已由人工接受，除非再增大 25%，不再告知"
        case "accepted":
            text = "{phase}稳定在 {after}，今后以此为基线（原为 {before}）"
        case "run ended":
            text = "训练在第 {step} 步结束，{phase}自第 {onset} 步起仍为 ×{ratio:.2f}"
        case "expired":
            text = "第 {step} 步之后没有新数据，{phase}的事件已关闭"
        case "flapping":
            text = "{phase}时好时坏，第 {step} 步为 ×{ratio:.2f}；一小时内不再告知"
        case _:
            text = rule.title
    return f"{message.run}：{_said(text, fields)}"


def _summary(message: Message) -> str | None:
    rule, fields = RULES.get(message.rule), _fields(message)
    if rule is None or fields is None:
        return None
    text = _said(rule.summary, fields)
    if message.closed_as is not None:
        facts = dict(message.facts)
        lasted = f"，第 {with_units(facts['Steps'])} 步" if "Steps" in facts else ""
        cost = f"，共损失 {_value(message, 'Cost', facts['Cost'])}" if "Cost" in facts else ""
        by_hand = "由人工接受" if "Accepted by" in facts else REASONS[message.closed_as]
        text += f"。{by_hand}{lasted}{cost}"
    return text + "。"


def _said(pattern: str, fields: Mapping[str, str | int | float]) -> str:
    """The pattern filled in; no blank stands at its ends or behind a mark."""
    return re.sub(r"(?<=[，。：；]) ", "", pattern.format(**fields)).strip()


def _fields(message: Message) -> dict[str, str | int | float] | None:
    """What the patterns may name; None where a number is none."""
    if not all(map(isfinite, (message.ratio, message.before, message.after))):
        return None
    sign = "±" if message.rule == "phase_noise" else ""
    return {
        "phase": "各阶段" if message.rule == "all_slow" else phase_name(message.phase),
        "step": message.step,
        "onset": message.onset_step,
        "ratio": message.ratio,
        "before": sign + with_units(quantity(message.phase, message.before)),
        "after": sign + with_units(quantity(message.phase, message.after)),
        "again": {"reopened": "再次", "repeated": "仍然"}.get(message.reason, ""),
    }


def _advice(message: Message) -> tuple[str, ...]:
    """The rule's own for the phase, and as in English how to hear no more of it."""
    rule = RULES.get(message.rule)
    known = tuple(
        f"已知情？{f'{found[1]}；' if found[1] else ''}在其增大前不再告知：{found[2]}"
        for line in message.advice
        if (found := _KNOWN.fullmatch(line))
    )
    if not message.advice or rule is None:
        return message.advice
    own = rule.advice.get(message.phase) or rule.advice.get("")
    return (*own, *known) if own else known or message.advice
