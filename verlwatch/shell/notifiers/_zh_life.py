"""Chinese words for the rules about the life of a run: stuck, silent, dead, done."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from verlwatch.shell.notifiers._zh_rule import Words, exactly

_STEP = r"(step [0-9]+(?: of [0-9]+)?|no step yet(?: of [0-9]+)?)"
_LASTED = r"([0-9.e+]+ (?:s|min|h))"
_AFTER = r"(after step [0-9]+(?: of [0-9]+)?|since its start)"
_TITLES = (
    (rf"silent: no line for {_LASTED} {_AFTER}", "沉默：{1:v}已有 {0:n}没有任何日志"),
    (rf"nothing has been printed for {_LASTED}, by no process of the run", "已有 {0:n}没有任何进程打印过任何内容"),
    (rf"stuck in (.+?): no progress for {_LASTED} {_AFTER}", "卡在{0:p}：{2:v}已有 {1:n}没有进展"),
    (rf"stuck: no progress for {_LASTED} {_AFTER}", "卡住：{1:v}已有 {0:n}没有进展"),
    (rf"no progress for {_LASTED}, where {_LASTED} are allowed", "已有 {0:n}没有进展，按自身节奏最多允许 {1:n}"),
    (r"blind: its log cannot be read", "看不见：日志无法读取"),
    (r"its logs can be read again", "日志又可以读取了"),
    (r"blind: ([0-9]+) of its logs cannot be read", "看不见：有 {0} 个日志无法读取"),
    (rf"finished: {_STEP}", "训练完成：{0:v}"),
    (rf"the run is done, {_STEP}", "训练已完成，{0:v}"),
    (r"runs again: a new start after (step [0-9]+)", "重新运行：在{0:v}之后重新启动"),
    (r"runs again: a new start after no step", "重新运行：上一次没有完成任何一步"),
    (r"goes on with (step [0-9]+): what failed has ended no training", "继续进行到{0:v}：出错的部分没有中断训练"),
    (
        rf"goes on: (step [0-9]+) came after {_LASTED}; (\S+) took {_LASTED} of it",
        "恢复进展：{0:v}用了 {1:n}，其中{2:p}占 {3:n}",
    ),
    (rf"goes on: (step [0-9]+) came after {_LASTED}", "恢复进展：{0:v}用了 {1:n}"),
    (r"its job is queued again", "作业重新排队"),
    (r"goes on: lines come again", "恢复：又有日志了"),
    (r"ended at step ([0-9]+) of ([0-9]+), without an error", "提前结束于第 {0}/{1} 步，没有报错"),
    (r"(.+), (at step [0-9]+(?: of [0-9]+)?|before its first step)", "{0:t}（{1:v}）"),
    (r"host out of memory: (.+) was killed", "主机内存不足：{0} 被终止"),
    (r"host out of memory", "主机内存不足"),
    (r"(.+) out of memory on rank (.+?) in (\S+)", "{0} 显存不足：rank {1:n}，阶段{2:p}"),
    (r"(.+) out of memory on rank (.+)", "{0} 显存不足：rank {1:n}"),
    (r"(.+) out of memory in (\S+)", "{0} 显存不足：阶段{1:p}"),
    (r"(.+) out of memory", "{0} 显存不足"),
    (r"killed by (.+)", "被 {0} 终止"),
    (r"failed \((.+)\)", "失败（{0:v}）"),
    (r"failed", "失败"),
    (r"crashed by (\S+) on rank (\S+)", "崩溃（{0}，rank {1}）"),
    (r"crashed by (.+)", "崩溃（{0}）"),
    (r"crashed: rank (\S+) ended with code (\S+)", "崩溃：rank {0} 以代码 {1} 退出"),
    (r"crashed: a child ended with code (\S+)", "崩溃：子进程以代码 {0} 退出"),
    (r"crashed: (.+)", "崩溃：{0}"),
    (r"crashed", "崩溃"),
    (r"job (\S+) ended by the scheduler: (.+)", "作业 {0} 被调度器结束：{1:v}"),
    (r"job ended by the scheduler: (.+)", "作业被调度器结束：{0:v}"),
    (r"node (.+) is lost", "节点 {0} 已失联"),
    (r"a node is lost", "有节点已失联"),
    (r"the inference engine died of (.+)", "推理引擎崩溃：{0}"),
    (r"the inference engine died", "推理引擎崩溃"),
    (r"the (\S+) engine died of (.+)", "推理引擎 {0} 崩溃：{1}"),
    (r"the (\S+) engine died", "推理引擎 {0} 崩溃"),
    (r"NPU error (.+)", "NPU 报错 {0}"),
    (r"NPU error", "NPU 报错"),
    (r"(\S+) timeout: ranks? (.+) waited", "{0} 超时：rank {1:n} 在等待"),
    (r"(\S+) timeout", "{0} 超时"),
    (r"the process \(pid (.+)\) ended with (.+)", "进程（pid {0}）以 {1:v} 结束"),
    (r"(.+) \(pid (.+)\) ended with (.+)", "{0}（pid {1}）以 {2:v} 结束"),
    (r"the process \(pid (.+)\) has disappeared", "进程（pid {0}）消失了"),
    (r"(.+) \(pid (.+)\) has disappeared", "{0}（pid {1}）消失了"),
    (r"a worker of Ray died \(pid (.+)\)", "Ray 的一个 worker 已死（pid {0}）"),
    (r"a worker of Ray died", "Ray 的一个 worker 已死"),
    (r"(.+) died \(pid (.+)\)", "{0} 已死（pid {1}）"),
    (r"(.+) died", "{0} 已死"),
)
_VALUES = (
    (r"after (step .+)", "{0:v}之后"),
    (r"at (step .+)", "在{0:v}"),
    (r"since its start", "自启动以来"),
    (r"before its first step", "尚未完成任何一步"),
    (r"step ([0-9]+) of ([0-9]+)", "第 {0}/{1} 步"),
    (r"step ([0-9]+)", "第 {0} 步"),
    (r"no step yet of ([0-9]+)", "尚未完成任何一步（共 {0} 步）"),
    (r"no step yet", "尚未完成任何一步"),
    (rf"{_LASTED} \((.+)\)", "{0:n}（{1:v}）"),
    (r"the limit for (start|loading)", "{0:p}阶段的上限"),
    (r"the limit for the first (step|validation|checkpoint)", "首个{0:v}的上限"),
    (r"(.+), and the limit for the first (validation|checkpoint)", "{0:v}，加首个{1:v}的上限"),
    (r"(.+), and ([0-9.]+)× its longest (validation|checkpoint)", "{0:v}，加最长一次{2:v}的 {1} 倍"),
    (r"([0-9.]+)× its last steps, (.+)", "最近两步（{1:n}）的 {0} 倍"),
    (r"([0-9.]+)× the longest of its few steps, (.+)", "为数不多的步中最长一步（{1:n}）的 {0} 倍"),
    (r"([0-9.]+)× the 95th percentile of its steps, (.+)", "自身各步 95 分位（{1:n}）的 {0} 倍"),
    (r"step", "步"),
    (r"validation", "验证"),
    (r"checkpoint", "检查点"),
    (r"(.+): the engines work on ([0-9]+) requests?", "{0:v}：推理引擎正在处理 {1} 个请求"),
    (r"(.+): the engines are idle, so it is behind generation", "{0:v}：推理引擎空闲，即生成已完成"),
    (r"starting", "启动中"),
    (r"starting: (.+)", "启动中：{0}"),
    (r"the step after step ([0-9]+)", "第 {0} 步之后的一步"),
    (r"loading a checkpoint", "加载检查点"),
    (r"the first step \(progress bar at ([0-9]+) of ([0-9]+)\)", "第一步（进度条 {0}/{1}）"),
    (r"the first step, after the initial validation", "初始验证之后的第一步"),
    (r"validation, begun", "验证，已开始"),
    (r"validation, its responses are generated, their scores come next", "验证，回答已生成，接下来打分"),
    (r"saving a checkpoint to (.+)", "保存检查点到 {0}"),
    (r"reward: calls have run into their time limit", "奖励计算：调用超时"),
    (r"(\S+) \(([0-9]+) of ([0-9]+)\)", "{0:p}（{1}/{2}）"),
    (r"(\S+) has begun", "{0:p}已开始"),
    (r"(\S+) has ended", "{0:p}已结束"),
    (r"([0-9.e+]+ GiB) of ([0-9.e+]+ GiB)", "{0}（共 {1}）"),
    (r"wandb's summary", "wandb 的总结"),
    (r"its process ended with code 0", "其进程以代码 0 退出"),
    (r"its job is completed", "其作业已完成"),
    (r"unknown: only its parent is told", "未知：只有其父进程得知"),
    (r"code (-?[0-9]+)", "代码 {0}"),
    (r"signal (\S+)", "信号 {0}"),
    (r"(?:due to )?time ?(?:limit|out)", "到达时限"),
    (r"cancelled", "被取消"),
    (r"(?:due to )?preempt(?:ed|ion)", "被抢占"),
    (r"deadline", "到达截止时间"),
    (r"boot_fail", "节点启动失败"),
    (r"(?:due to )?node_? ?fail(?:ure)?", "节点故障"),
    (r"(\S.*) ([0-9.e+-]+) at step ([0-9]+), ([0-9.e+-]+) at the end", "{0}：第 {2} 步时为 {1}，结束时为 {3}"),
    (r"(.+, )other ([0-9]+%)", "{0}其他 {1}"),
)
_EVIDENCE = (
    (r"no log of the run has grown since", "此后没有任何日志增长"),
    (r"no line that tells of progress has come since", "此后没有一行表明有进展"),
    (r"lines still arrive, and none of them tells of progress", "仍有日志，但没有一行表明有进展"),
    (r"at (\S{1,200}:\S{1,20}) in (\S{1,200})", "位于 {0}，函数 {1}"),
    (r"in (.{1,200}) \(pid (\S{1,12})\)", "任务 {0}（pid {1}）"),
)
_ADVICE = (
    (
        r"See where it stands: `py-spy dump --pid PID` for the trainer's process and for a worker of each node\.",
        "看它停在哪里：对训练主进程和每个节点的一个 worker 运行 `py-spy dump --pid PID`。",
    ),
    (
        r"See where it stands: `py-spy dump --pid PID` for (.+) and for a worker of each node\.",
        "看它停在哪里：对 {0:c} 和每个节点的一个 worker 运行 `py-spy dump --pid PID`。",
    ),
    *exactly({
        "See whether the process lives, and its host: `ps`, `ray status`, the scheduler's view of the job.":
            "看进程和主机是否还在：`ps`、`ray status`、调度器里的作业状态。",
        "If it lives and prints nothing it hangs: `py-spy dump --pid PID` says where.":
            "若进程还在而没有输出，就是挂住了：`py-spy dump --pid PID` 能看出停在哪里。",
        "Look at the reward service or sandbox: a request without a time limit holds up the whole step.":
            "检查奖励服务或沙箱：一个没有超时的请求会拖住整步。",
        "Look at the longest request of the engines and at tool calls: one sample may hold up all others.":
            "看推理引擎里最长的请求和工具调用：一个样本就可能拖住全部。",
        "Look at the storage of the checkpoints: a file system that does not answer, a full disk.":
            "检查检查点的存储：文件系统没有响应，或磁盘已满。",
        "Look at the network between the nodes (the first collective) and at what the model is loaded from.":
            "检查节点之间的网络（第一次集合通信），以及模型从哪里加载。",
        "If a collective hangs, its watchdog ends the run after its own limit, often 10 to 30 minutes later.":
            "若是集合通信挂住，watchdog 会在其时限之后（往往 10 至 30 分钟）结束训练。",
        "See why with `verlwatch status`: permissions, a file system that does not answer, a host that is gone.":
            "用 `verlwatch status` 看原因：权限、没有响应的文件系统、已经不在的主机。",
        "Until it is mended nothing is known of the run: not that it is stuck, and not that it is well.":
            "修好之前对该训练一无所知：既不知道是否卡住，也不知道是否正常。",
        "Look for what ends a run in good order: an epoch limit (trainer.total_epochs), early stopping, a data loader "
        "that ran out, an ESI expiration.":
            "看是什么让训练正常退出：epoch 上限（trainer.total_epochs）、提前停止、数据用完、ESI 到期。",
        "SIGKILL is what the kernel sends when memory has run out, and what people send: `dmesg -T | tail` says which.":
            "内存耗尽时内核会发 SIGKILL，人也会发：`dmesg -T | tail` 能看出是哪一种。",
        "See who ended it: the scheduler, a colleague, a clean-up job; the kernel's log tells of memory.":
            "看是谁结束了它：调度器、同事、清理任务；与内存有关的在内核日志里。",
        "Ray's list of possible reasons is a guess: the last lines of the process itself say more "
        "(`/tmp/ray/session_latest/logs/worker-*-PID.err` on its host), and the kernel's log whether it was killed.":
            "Ray 列出的可能原因只是猜测：该进程自己最后的日志更可靠"
            "（其主机上的 `/tmp/ray/session_latest/logs/worker-*-PID.err`），是否被内核终止则看内核日志。",
        "The innermost exception and its place are named above; what follows it in the log are its callers.":
            "最内层的异常及其位置已在上面；日志中其后的都是它的调用者。",
        "Threads have run out: raise `ulimit -u` or lower OMP_NUM_THREADS and the number of workers on the host.":
            "线程数已用尽：调高 `ulimit -u`，或调低 OMP_NUM_THREADS 和主机上的 worker 数。",
        "See whether the host is up and reachable; if it is, why its raylet ended (`raylet.out`, the kernel's log).":
            "看主机是否在线、能否连通；若能，看其 raylet 为何退出（`raylet.out`、内核日志）。",
        "The engine's own traceback above the first of these lines says why; what follows it is its callers.":
            "原因在第一行之前引擎自己的 traceback 里；其后的都是它的调用者。",
        "Often it is memory (rollout.gpu_memory_utilization) or a request that the engine cannot take (lengths, a "
        "tool).":
            "常见原因是显存（rollout.gpu_memory_utilization），或引擎无法处理的请求（长度、工具）。",
        "Look at the device log (`npu-smi info`, ASCEND plog) of the host and rank named, by the error code.":
            "按错误码查看所述主机和 rank 的设备日志（`npu-smi info`、ASCEND plog）。",
        "The rank that is missing among those that waited is the one to look at: it died, hangs elsewhere, or went "
        "another way through the code.":
            "要看的是没有在等待的那个 rank：它已死、停在别处，或走了另一条代码路径。",
        "If a rank was only slow (a long checkpoint, a tokenizer), raise actor_rollout_ref.nccl_timeout.":
            "若某个 rank 只是慢（很长的检查点、tokenizer），调高 actor_rollout_ref.nccl_timeout。",
        "Give the engine less or more room: rollout.gpu_memory_utilization; fewer requests at once: "
        "rollout.max_num_seqs.":
            "调整推理引擎的显存：rollout.gpu_memory_utilization；减少同时的请求：rollout.max_num_seqs。",
        "Lower rollout.log_prob_micro_batch_size_per_gpu, or bound it by tokens: log_prob_use_dynamic_bsz.":
            "调低 rollout.log_prob_micro_batch_size_per_gpu，或按 token 限制：log_prob_use_dynamic_bsz。",
        "Lower ref.log_prob_micro_batch_size_per_gpu, or offload the reference: ref.fsdp_config.param_offload.":
            "调低 ref.log_prob_micro_batch_size_per_gpu，或把参考模型 offload：ref.fsdp_config.param_offload。",
        "Lower actor.ppo_micro_batch_size_per_gpu, or bound it by tokens: actor.use_dynamic_bsz with "
        "ppo_max_token_len_per_gpu.":
            "调低 actor.ppo_micro_batch_size_per_gpu，或按 token 限制：actor.use_dynamic_bsz 与 "
            "ppo_max_token_len_per_gpu。",
        "Lower critic.ppo_micro_batch_size_per_gpu.": "调低 critic.ppo_micro_batch_size_per_gpu。",
        "Lower the micro batch size of the phase that it was in, and look whether the longest responses have grown.":
            "调低当时所在阶段的 micro batch 大小，并看最长的回答是否变长了。",
        "Much is reserved but unallocated: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may help.":
            "保留而未分配的显存很多：PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True 可能有帮助。",
        "It ran into its time limit: resume it from the last checkpoint, or ask for more time.":
            "到达时限：从最后的检查点恢复，或申请更多时间。",
        "See who ended it: `sacct -j JOBID --format=JobID,State,ExitCode,DerivedExitCode,Comment`.":
            "看是谁结束了它：`sacct -j JOBID --format=JobID,State,ExitCode,DerivedExitCode,Comment`。",
        "The victim is seldom the culprit: look at the largest consumer, and at what grew "
        "(`perf/cpu_memory_used_gb`).":
            "被终止的往往不是元凶：看占用最多的进程，以及什么在增长（`perf/cpu_memory_used_gb`）。",
        "Take less per host: fewer data loader and reward workers, no parameter offload, a smaller replay buffer, or "
        "give the job more memory. Ray kills at 95 % (RAY_memory_usage_threshold).":
            "减少每台主机的占用：更少的数据加载和奖励进程、不做参数 offload、更小的 replay buffer，或给作业更多内存。"
            "Ray 在 95 % 时开始终止进程（RAY_memory_usage_threshold）。",
    }),
)  # fmt: skip
_LABELS = {
    "Last step": "最后一步",
    "Last known": "最后已知",
    "Without progress": "无进展已有",
    "Allowed": "允许时长",
    "Doing": "正在",
    "Was doing": "当时正在",
    "Still printing": "仍在打印",
    "Lived": "运行了",
    "Job": "作业",
    "For": "已持续",
    "Host": "主机",
    "Actor": "Ray 进程",
    "Exit type": "退出类型",
    "Exit": "退出方式",
    "Operation": "操作",
    "SeqNum": "序号（SeqNum）",
    "Waited": "等待了",
    "In": "所在任务",
    "Phase": "阶段",
    "Rank": "rank 号",
    "Process": "进程",
    "Process lived": "进程运行了",
    "Wanted": "申请",
    "Free": "剩余",
    "Allocated by PyTorch": "PyTorch 已分配",
    "Largest holder": "占用最多",
    "Memory": "内存",
    "Victim": "被终止的进程",
    "Largest consumer": "占用最多的进程",
    "Sign of the end": "结束的迹象",
    "Steps": "步数",
    "Duration": "时长",
    "GPU-hours": "GPU 小时",
    "Time by phase": "各阶段耗时占比",
    "Best validation": "最佳验证结果",
}
WORDS = Words(
    rules=(
        "silent", "stalled", "ended_early", "killed", "actor_died", "crashed", "node_died", "engine_dead", "npu_error",
        "collective_timeout", "device_oom", "job_ended", "host_oom", "blind", "finished",
    ),
    titles=_TITLES,
    values=_VALUES,
    evidence=_EVIDENCE,
    advice=_ADVICE,
    labels=_LABELS,
    quoted=frozenset({
        "Job", "Host", "Actor", "Exit type", "Operation", "SeqNum", "In", "Phase", "Rank", "Process", "Largest holder",
        "Victim", "Largest consumer",
    }),
)  # fmt: skip
