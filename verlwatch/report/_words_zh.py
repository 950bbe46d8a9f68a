"""The report in Chinese: sentences by their English templates, and what metrics are called.

Names of phases, rules and keys are verl's own, which people search their logs for.
"""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from collections.abc import Mapping

from verlwatch.report._html_zh import HTML
from verlwatch.report._words_zh_advice import ADVICE, LAYOUT, LAYOUT_MORE
from verlwatch.report._words_zh_form import FORM, GAUGES, MISSING, VERSUS

LABELS: Mapping[str, str] = {
    "step": "整步",
    "printed_step": "日志所印的整步",
    "gen": "生成",
    "gen_max": "最慢的生成",
    "reward": "奖励计算",
    "old_log_prob": "旧策略概率",
    "ref": "参考模型",
    "values": "价值估计",
    "adv": "优势计算",
    "update_critic": "critic 更新",
    "update_actor": "actor 更新",
    "update_weights": "权重同步",
    "testing": "验证",
    "save_checkpoint": "保存检查点",
    "other": "各阶段之间",
    "tokens": "token 数",
    "response_tokens": "回复 token 数",
    "longest_response": "最长回复",
    "throughput": "吞吐",
}

_ATTRIBUTION: Mapping[str, str] = {
    "A step takes {more} {word}: {after} instead of {before}.": "一步{word} {more}：现在 {after}，原来 {before}。",
    "more": "多用",
    "less": "少用",
    "A step takes as long as before: {after}.": "一步与之前一样长：{after}。",
    " (tokens ×{ratio})": "（token ×{ratio}）",
    "−{seconds}": "−{seconds}",
    "{phase} brings {seconds} of it ({part}).": "其中 {phase} 占 {seconds}（{part}）。",
    "The log names no tokens: more work and less efficiency cannot be told apart.": (
        "日志没有 token 数：无法区分是工作量变多还是效率下降。"
    ),
    "{workload} of it is other work{tokens}, {efficiency} is lost at equal work.": (
        "其中 {workload} 是工作量的变化{tokens}，同等工作量下多用 {efficiency}。"
    ),
    "{workload} of it is other work{tokens}; at equal work a step takes {efficiency} less.": (
        "其中 {workload} 是工作量的变化{tokens}；同等工作量下一步少用 {efficiency}。"
    ),
    "Reckoned by seconds per token: a judgement from few steps.": "按每 token 的秒数计算：步数少，仅供参考。",
    "Reckoned by a regression over the earlier steps.": "按对之前各步的回归计算。",
    "step {onset}": "第 {onset} 步",
    "since step {onset}": "自第 {onset} 步起",
    "steps {onset} to {last}": "第 {onset} 至 {last} 步",
    "{rule}: {phase}, {span}": "{rule}：{phase}，{span}",
    "{phase} ×{ratio} at equal work, {span}": "{phase} 同等工作量下 ×{ratio}，{span}",
    "{phase} ×{ratio}, {span}": "{phase} ×{ratio}，{span}",
    "A judgement from few steps: there is no baseline yet.": "步数少，仅供参考：尚无基线。",
    "A judgement from few steps.": "步数少，仅供参考。",
    "Lost so far: {lost}.": "至今损失 {lost}。",
    "Lost: {lost}.": "共损失 {lost}。",
}
_CAUSES: Mapping[str, str] = {
    "Within {phase}, {part} brings {seconds} of it.": "在 {phase} 内，{part}占其中 {seconds}。",
    "Its long tail has grown: the slowest sample takes {after}× the mean one, {before}× before.": (
        "长尾变长：最慢的样本是平均的 {after} 倍，之前 {before} 倍。"
    ),
    "the engine's generation": "引擎的生成",
    "waiting for tools": "等待工具",
    "bringing the weights to the engine": "把权重送到引擎",
    "scoring the samples": "给样本打分",
    "waiting for samples": "等待样本",
    "likely behind it: {cause}": "可能原因：{cause}",
    "the host or the network (likely: every phase slowed at once)": "主机或网络（很可能：各阶段同时变慢）",
    "work between the timed phases, as data loading or logging (likely: no phase explains it)": (
        "各计时阶段之间的工作，如加载数据或写日志（很可能：没有阶段能解释）"
    ),
    "a straggler, or another job on the host (a guess from one step)": "有掉队者，或主机上有别的作业（由一步猜测）",
    "not known (a guess from few steps)": "未知（步数少）",
    "something that comes and goes on the hosts (a guess)": "主机上时有时无的东西（猜测）",
    "something that fills up or accumulates (possible: it grows bit by bit)": "有东西在填满或累积（可能：一点点增长）",
    "something in {phase} itself (possible: other phases are as before)": "{phase} 本身（可能：其他阶段照旧）",
}
_HEADLINE: Mapping[str, str] = {
    "verl {release} is old: much of what slows it has been mended since.": (
        "verl {release} 较旧：许多变慢的原因后来已修复。"
    ),
    "No step with timing was found.": "没有找到带计时的步。",
    " There are too few steps to judge.": "步数太少，无法判断。",
    "{phase} is what slowed the run: {title}.": "使训练变慢的是 {phase}：{title}。",
    "Every phase got slower at once, as from the host or the network: {title}.": (
        "各阶段同时变慢，像是主机或网络的原因：{title}。"
    ),
    "Time between the phases is what slowed the run: {title}.": "使训练变慢的是各阶段之间的时间：{title}。",
    ". No phase lost efficiency.": "。没有阶段效率下降。",
    "No change of any phase stands out.": "没有哪个阶段有明显变化。",
    "{world} GPUs: {nodes} node(s) of {each}.": "{world} 个 GPU：{nodes} 个节点，每个 {each} 个。",
    "Training: {sizes}.": "训练：{sizes}。",
    "Generation: {copies} copies of the model on {tp} GPU(s) each{pp}.": (
        "生成：{copies} 份模型，每份 {tp} 个 GPU{pp}。"
    ),
    "{prompts} prompts a copy and step.": "每份每步 {prompts} 条提示。",
    "{count} samples of a mini batch on each rank.": "一个 mini batch 在每个 rank 上 {count} 条样本。",
    "Generation took {into} prompts and gave {out} samples: {n} each.": (
        "生成输入 {into} 条提示，输出 {out} 条样本：每条 {n} 个。"
    ),
    "Printed mesh {name} before step {step}: {copies} copies on {split} GPU(s) each.": (
        "第 {step} 步之前打印的 mesh {name}：{copies} 份模型，每份 {split} 个 GPU。"
    ),
    "configuration": "配置",
    "checkpoint names": "检查点文件名",
    "device mesh": "device mesh",
    "memory lines": "显存行",
    "{seconds} of training{hours}.": "训练 {seconds}{hours}。",
    ", {hours} GPU-hours on {gpus} GPUs": "，{gpus} 个 GPU 共 {hours} GPU 小时",
    " ({hours} GPU-hours)": "（{hours} GPU 小时）",
    "Incidents cost {seconds}{hours}, {share} of it.": "事件损失 {seconds}{hours}，占 {share}。",
    "lost to incidents": "事件损失",
    "total": "合计",
    "validation {seconds}": "验证 {seconds}",
    "checkpoint {seconds}": "检查点 {seconds}",
}
_FINDINGS: Mapping[str, str] = {
    "{phase} ({share})": "{phase}（{share}）",
    "{label}: {before} before, {after} then": "{label}：原来 {before}，后来 {after}",
    "{label}: up to {high}": "{label}：最多 {high}",
    "{label} {seconds}": "{label} {seconds}",
    "{phase} takes {share} of a step": "{phase} 占一步的 {share}",
    "{phase} takes {seconds} of the median step; the next is {second}.": (
        "中位的一步里 {phase} 用 {seconds}；其次是 {second}。"
    ),
    "Steps take {ratio} longer because there is more work: no fault": "每步多用 {ratio} 是因为工作量变多：不是故障",
    "Steps take {ratio} longer, most of it not for more work": "每步多用 {ratio}，多半不是因为工作量",
    "From the first to the last steps, {share} of what they take longer is more work.": (
        "从最初几步到最后几步，多用时间的 {share} 来自工作量。"
    ),
    "the slowest sample takes {ratio}× the mean one": "最慢的样本是平均的 {ratio} 倍",
    "In the median step the slowest sample runs for {most} of the {gen} of generation, the mean one for {mean}: the "
    "rest waits.": "中位的一步里，生成用 {gen}，最慢的样本占 {most}，平均样本 {mean}：其余都在等待。",
    "tools take {share} of generation": "工具调用占生成的 {share}",
    "A sample waits {tools} for its tools, the slowest one {slowest}.": "样本等待工具 {tools}，最慢的样本 {slowest}。",
    "{share} of the responses reach the limit": "{share} 的回复达到长度上限",
    "They are cut at {limit} tokens: the longest response alone sets the end of generation.": (
        "它们在 {limit} 个 token 处被截断：生成何时结束由最长的回复决定。"
    ),
    "the KV cache is full": "KV cache 已满",
    "Requests are taken back, or wait for room in the KV cache, and are computed again.": (
        "请求被收回，或等待 KV cache 的空间，要重新计算。"
    ),
    "{count} requests wait while the KV cache has room": "KV cache 有空间，却有 {count} 个请求在等待",
    "The median use of the KV cache is {share} %: something else limits how many requests run.": (
        "KV cache 使用率中位数为 {share} %：限制并发的是别的东西。"
    ),
    "nccl-tests measured {gb} GB/s of bus bandwidth": "nccl-tests 测得总线带宽 {gb} GB/s",
    "What this hardware should reach is not in the log: compare with the vendor's figure for these links.": (
        "日志里没有这套硬件应有的带宽：请与厂商给出的数值比较。"
    ),
    "bringing the weights to the engine takes {share} of a step": "把权重送到推理引擎占一步的 {share}",
    "{name}: {median} in the median step.": "{name}：中位的一步 {median}。",
    "{label} takes {seconds} of a step of {step}": "一步 {step} 中{label}用 {seconds}",
    "The step waits for its data.": "这一步在等数据。",
    "{share} of a step is in no timed phase": "一步的 {share} 不属于任何计时阶段",
    "Loading data, balancing batches, logging and waiting for Ray are between the phases; the log does not tell "
    "which.": "加载数据、均衡批次、写日志、等待 Ray 都在各阶段之间；日志没有说是哪一个。",
    "GPUs are in use {share} % of the time": "GPU 利用率 {share} %",
    "Below 50 % for long, something else than the GPUs holds up the run.": "长时间低于 50 %：拖慢训练的不是 GPU。",
    "validation and checkpoints take {share} of the training": "验证与检查点占训练的 {share}",
    "rank {rank}": "rank {rank}",
    "memory of {card} has grown by {by} GB": "{card} 的显存增加了 {by} GB",
    "{card} held {first} GB at step {a} and {last} GB at step {b} ({moment}).": (
        "{card} 在第 {a} 步占 {first} GB，第 {b} 步占 {last} GB（{moment}）。"
    ),
    "{card} holds {gb} GB, the others {others} GB": "{card} 占 {gb} GB，其他卡 {others} GB",
    "{what}.": "{what}。",
    "the other cards' median": "其他卡的中位数",
    "the other card": "另一张卡",
    "the difference was small before: something accumulates there": "此前差别很小：那里有东西在累积",
    "{card} is {excess} GB over {others} ({moment}, {kind}) since step {since}: {why}.": (
        "自第 {since} 步起，{card} 比{others}多 {excess} GB（{moment}，{kind}）：{why}。"
    ),
    "the shards are unequal, or something accumulates there": "分片不均，或那里有东西在累积",
    "a remark: little enough to be normal": "仅供参考：差别小，属正常",
    "{card} is {share} full": "{card} 已用 {share}",
    "{gb} of {total} GB at step {step}: a longer batch may be one too many.": (
        "第 {step} 步 {total} GB 用了 {gb} GB：再长一点的批次可能就放不下。"
    ),
    "any time": "任意时刻",
    "{card}: {gb} GB at step {step}": "{card}：第 {step} 步 {gb} GB",
}
PHRASES: Mapping[str, str] = {
    **_ATTRIBUTION,
    **_CAUSES,
    **_HEADLINE,
    **_FINDINGS,
    **GAUGES,
    **MISSING,
    **FORM,
    **HTML,
    **VERSUS,
    **LAYOUT,
    **LAYOUT_MORE,
    **ADVICE,
}


def seconds(value: float) -> str:
    """Seconds as a person says them."""
    if value < 100:  # noqa: PLR2004 - up to here seconds are what people think in
        return f"{value:.3g} 秒"
    if value < 600:  # noqa: PLR2004 - the same
        return f"{value:.0f} 秒"
    return f"{value / 60:.0f} 分钟" if value < 7200 else f"{value / 3600:.1f} 小时"  # noqa: PLR2004 - two hours
