"""The headings, labels and phrases around a report and a comparison, in Chinese, by their English templates."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from collections.abc import Mapping

FORM: Mapping[str, str] = {
    "Last steps": "最近各步",
    "Where the time goes": "时间花在哪里",
    "Changes": "变化",
    "From the first steps to the last": "从最初几步到最后几步",
    "What the log shows": "日志显示",
    "Layout": "并行布局",
    "Memory": "显存",
    "Engine": "推理引擎",
    "Communication": "通信",
    "Data supply": "数据供给",
    "Utilisation": "利用率",
    "Cost": "成本",
    "What to try": "建议",
    "What this log does not tell": "这份日志没有说明",
    "step": "步",
    "largest": "最大",
    "remark": "备注",
    "phase": "阶段",
    "median s": "中位 秒",
    "p90 s": "p90 秒",
    "longest s (step)": "最长 秒（步）",
    "share": "占比",
    "GPU-hours": "GPU 小时",
    "ms per token": "毫秒/token",
    "before s": "之前 秒",
    "after s": "之后 秒",
    "A s": "A 秒",
    "B s": "B 秒",
    "more s": "多用 秒",
    "work s": "工作量 秒",
    "efficiency s": "效率 秒",
    "× at equal work": "同等工作量 ×",
    "key": "键",
    "value": "值",
    "card": "卡",
    "counted": "统计",
    "first GB": "最初 GB",
    "last GB": "最后 GB",
    "most GB (step)": "最多 GB（步）",
    "size GB": "容量 GB",
    "used": "已用",
    "reserved": "已保留",
    "allocated": "已分配",
    "what": "项目",
    "unit": "单位",
    "median": "中位",
    "least": "最小",
    "most": "最大值",
    "seen": "次数",
    "time": "时间",
    "A": "A",
    "B": "B",
    "can change": "可影响",
    "seconds; largest = share of the phase that takes most of the step without validation and checkpoint": (
        "单位为秒；最大 = 不计验证与检查点时用时最多的阶段的占比"
    ),
    "work: what more tokens explain; efficiency: what a phase takes longer at equal work": (
        "工作量：由更多 token 解释的部分；效率：同等工作量下多用的部分"
    ),
    "{phase}: {rule}, onset step {onset}, told at step {told}, {end}": (
        "{phase}：{rule}，起始于第 {onset} 步，第 {told} 步告知，{end}"
    ),
    "×{ratio} at equal work ({severity})": "同等工作量下 ×{ratio}（{severity}）",
    "×{ratio} against the few steps before ({severity})": "与之前几步相比 ×{ratio}（{severity}）",
    "median before {before}, during {during}: ×{ratio} in seconds": (
        "中位数 之前 {before}，期间 {during}：秒数 ×{ratio}"
    ),
    "median before {before}, during {during}: ×{ratio} as printed": "中位数 之前 {before}，期间 {during}：×{ratio}",
    "per token {before} → {during} ms: ×{ratio} per token": "每 token {before} → {during} 毫秒：×{ratio}",
    "{name}: no step with timing found.": "{name}：没有找到带计时的步。",
    " of {planned}": "，共 {planned} 步",
    "{name}: {steps} steps, {first} to {last}{planned}": "{name}：{steps} 步，{first} 至 {last}{planned}",
    "{seconds} of training": "训练 {seconds}",
    "closed at step {until}: {how}": "第 {until} 步结束：{how}",
    "resolved": "已恢复",
    "accepted": "已接受",
    "run ended": "训练已结束",
    "expired": "已过期",
    "still open": "仍未结束",
    "{count} changes:": "{count} 处变化：",
    "1 change:": "1 处变化：",
    "the {count} cards that hold most, of {all}": "{all} 张卡中占用最多的 {count} 张",
    "verl {release}": "verl {release}",
    "verl version not told": "日志没有说明 verl 版本",
    "{gpus} GPUs ({by})": "{gpus} 个 GPU（{by}）",
    "{attempts} attempts": "{attempts} 次启动",
    "asynchronous: gen is the time it waits for samples": "异步训练：gen 是等待样本的时间",
    "{title} ({confidence})": "{title}（{confidence}）",
    "{text} ({confidence})": "{text}（{confidence}）",
    "certain": "确定",
    "likely": "很可能",
    "possible": "可能",
    "cannot tell": "无法判断",
    "info": "信息",
    "warning": "警告",
    "critical": "严重",
    "Steps {a} to {b} against steps {c} to {d}.": "第 {a} 至 {b} 步与第 {c} 至 {d} 步相比。",
}
VERSUS: Mapping[str, str] = {
    "{side}: {name}, {steps} steps, {first} to {last}, verl {release}": (
        "{side}：{name}，{steps} 步，{first} 至 {last}，verl {release}"
    ),
    "and {count} more": "另有 {count} 个",
    "Phase by phase": "逐阶段",
    "Configured differently": "配置差异",
    "What to doubt": "需要存疑的地方",
    "In brackets: 95 % of {kind}; without brackets there are too few steps for an interval.": (
        "括号内：{kind}的 95 %；没有括号则步数太少，给不出区间。"
    ),
    "bootstrap resamples of both sides, in blocks of neighbouring steps": "对两边按相邻步分块自助重采样",
    "could be explained by {keys}": "可能由 {keys} 解释",
    "{phase} is slower in B at equal work, ×{ratio} ({low} to {high})": (
        "同等工作量下 B 的 {phase} 更慢，×{ratio}（{low} 至 {high}）"
    ),
    "{phase} is faster in B at equal work, ×{ratio} ({low} to {high})": (
        "同等工作量下 B 的 {phase} 更快，×{ratio}（{low} 至 {high}）"
    ),
    "One of the two shows no steps with timing.": "其中一份没有带计时的步。",
    "One of the two names no tokens: seconds are compared as they are.": "其中一份没有 token 数：直接比较秒数。",
    "B works on ×{ratio} the tokens of A, which A's steps say little of: the intervals may be too narrow.": (
        "B 的 token 是 A 的 {ratio} 倍，A 的各步对此说明不了多少：区间可能偏窄。"
    ),
    "Too few steps for an interval.": "步数太少，给不出区间。",
    "The releases differ: verl {a} and {b}; what a phase contains may differ, too.": (
        "版本不同：verl {a} 与 {b}；阶段所含内容也可能不同。"
    ),
    "One of the two trains asynchronously: its gen is the time it waits for samples.": (
        "其中一个是异步训练：它的 gen 是等待样本的时间。"
    ),
    "One of the logs shows no configuration: what is configured differently is not known.": (
        "其中一份日志没有配置：不知道配置有何不同。"
    ),
    "Fewer than {count} steps: seconds per token are compared, fixed costs and all.": (
        "不足 {count} 步：比较每 token 的秒数，含固定开销。"
    ),
}
GAUGES: Mapping[str, str] = {
    "over {full} % in {share} of the lines": "{share} 的行里超过 {full} %",
    "{share} of a step": "占一步的 {share}",
    "{mb} MB a message": "每条消息 {mb} MB",
    "wait for {what}": "等待 {what}",
    "bus bandwidth (nccl-tests, average)": "总线带宽（nccl-tests，平均）",
    "bus bandwidth (nccl-tests, largest message)": "总线带宽（nccl-tests，最大消息）",
    "preempted requests of a sample": "每个样本被抢占的请求",
    "preempted requests of the worst sample": "最差样本被抢占的请求",
    "weights to the engine (reshard)": "权重送到引擎（reshard）",
    "weights to the engine (update_weights)": "权重送到引擎（update_weights）",
    "weights to the engine (param_sync)": "权重送到引擎（param_sync）",
    "waiting for samples": "等待样本",
    "trainer idle": "训练端空闲",
    "throughput": "吞吐",
    "MFU of the actor": "actor 的 MFU",
    "MFU of the actor's forward pass": "actor 前向的 MFU",
    "MFU of the critic": "critic 的 MFU",
    "tokens generated a second": "每秒生成 token",
    "requests that run": "运行中的请求",
    "requests that wait": "等待中的请求",
    "KV cache in use": "KV cache 使用率",
    "prefix cache hits": "前缀缓存命中率",
    "preemptions in ten seconds": "十秒内的抢占",
    "preemptions since the engine started": "引擎启动以来的抢占",
    "requests taken back": "被收回的请求",
    "memory in use while the engine sleeps": "引擎休眠时占用的显存",
    "communication": "通信",
    "samples generated a second": "每秒生成样本",
    "writing to the buffer": "写入缓冲区",
    "fetching a batch": "取一个批次",
    "rollout idle": "rollout 空闲",
    "rollout in use": "rollout 使用率",
    "GPU utilisation": "GPU 利用率",
}
MISSING: Mapping[str, str] = {
    "{what}: {how}": "{what}：{how}",
    "where the time of a step goes": "一步的时间花在哪里",
    "verl prints it with trainer.logger=['console'] (or 'file' for JSONL); `verlwatch parse LOG` shows what was read": (
        "设 trainer.logger=['console']（或 'file' 写 JSONL）verl 就会打印；`verlwatch parse LOG` 显示读到了什么"
    ),
    "whether slower steps only had more to do": "变慢的步是否只是工作更多",
    "the step lines of this log name no tokens: verl prints perf/total_num_tokens since 0.2": (
        "这份日志的步行没有 token 数：verl 自 0.2 起打印 perf/total_num_tokens"
    ),
    "what is configured, and so what to turn": "配置是什么，因而该调什么",
    "keep the beginning of the log, where verl prints its configuration, or give .hydra/config.yaml with the log": (
        "保留日志开头（verl 在那里打印配置），或与日志一起给出 .hydra/config.yaml"
    ),
    "whether all cards hold the same": "各卡显存是否一样",
    "`nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total,utilization.gpu --format=csv -l 10` beside the "
    "log, or VERL_LOGGING_LEVEL=DEBUG with RAY_DEDUP_LOGS=0; verl's step line tells of one rank": (
        "与日志同时运行 `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total,utilization.gpu --format=csv"
        " -l 10`，或设 VERL_LOGGING_LEVEL=DEBUG 与 RAY_DEDUP_LOGS=0；verl 的步行只说一个 rank"
    ),
    "whether the engine's KV cache is full": "推理引擎的 KV cache 是否已满",
    "{key}=False and VLLM_LOGGING_LEVEL=INFO; SGLang: log_level info": (
        "{key}=False 并设 VLLM_LOGGING_LEVEL=INFO；SGLang：log_level info"
    ),
    "whether tensor parallelism is taken up": "张量并行是否生效",
    "verl prints no mesh; print rollout_device_mesh once, or look at the memory of the cards after the engine is "
    "built": "verl 不打印 mesh；打印一次 rollout_device_mesh，或看引擎建好后各卡的显存",
    "whether the network is as fast as it should be": "网络是否达到应有的速度",
    "paste the table of nccl-tests (all_reduce_perf -b 16M -e 1G -f 2 -g N) into a log; NCCL_* variables are known "
    "only where a log shows them": (
        "把 nccl-tests 的表（all_reduce_perf -b 16M -e 1G -f 2 -g N）贴进日志；NCCL_* 变量只有日志里出现才知道"
    ),
    "how long a step waits for its data": "一步等数据多久",
    "verl does not time it; what is in no timed phase holds it, together with logging and balancing": (
        "verl 不为它计时；它与写日志、均衡批次一起落在没有计时的部分里"
    ),
    "how busy the GPUs are": "GPU 有多忙",
    "nvidia-smi beside the log, or `verlwatch run` on the hosts": (
        "与日志同时运行 nvidia-smi，或在各主机上运行 `verlwatch run`"
    ),
}
