"""Chinese words for the rules about samples and about the training itself."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from collections.abc import Mapping

from verlwatch.shell.notifiers._zh_rule import Rule

PHASES: Mapping[str, str] = {
    "slowest_sample": "最慢样本与平均样本之比",
    "preemptions": "每个样本的抢占次数",
    "tool_wait": "工具调用占样本时间的比例",
    "aborted": "被中止的样本比例",
    "clipped": "被截断的回答比例",
    "grad_norm": "actor 梯度范数",
    "critic_grad_norm": "critic 梯度范数",
    "entropy": "策略熵",
    "kl": "KL 散度",
    "score": "平均奖励",
    "response_length": "平均回答长度",
    "losses": "损失与梯度",
}
_SINCE = "{phase}{again}自第 {onset} 步起为 {after}，此前为 {before}"

RULES: Mapping[str, Rule] = {
    "long_tail": Rule(
        "生成{again}在等最慢的样本：" + _SINCE.replace("{again}", ""),
        "自第 {onset} 步起，最慢的样本耗时是平均样本的倍数变大，是此前的 {ratio:.2f} 倍",
        "",
        {
            "": (
                "若最慢的回答已达 data.max_response_length：调低它，或惩罚这类回答（reward_model.overlong_buffer）。",
                "若在等工具：设置工具超时、actor_rollout_ref.rollout.multi_turn.max_assistant_turns 和 "
                "actor_rollout_ref.rollout.multi_turn.max_tool_response_length。",
                "若被抢占：调高 actor_rollout_ref.rollout.gpu_memory_utilization，或调低 "
                "actor_rollout_ref.rollout.max_num_seqs。",
            )
        },
    ),
    "preemptions": Rule(
        "推理引擎{again}在抢占样本：" + _SINCE.replace("{again}", ""),
        "自第 {onset} 步起抢占增多：KV cache 已满，被抢占的 token 要重新计算",
        "",
        {
            "": (
                "给 KV cache 更多空间：actor_rollout_ref.rollout.gpu_memory_utilization，或更大的 "
                "actor_rollout_ref.rollout.tensor_model_parallel_size。",
                "让同时运行的样本更少：actor_rollout_ref.rollout.max_num_seqs；或限制长度：data.max_response_length。",
            )
        },
    ),
    "tool_calls": Rule(
        _SINCE,
        "自第 {onset} 步起，样本等待工具的时间占比变大",
        "",
        {
            "": (
                "检查工具服务或沙箱：负载、超时、重试、请求上限。",
                "在 actor_rollout_ref.rollout.multi_turn.tool_config_path 的文件里设置超时，并限制轮数与返回长度："
                "actor_rollout_ref.rollout.multi_turn.max_assistant_turns、"
                "actor_rollout_ref.rollout.multi_turn.max_tool_response_length。",
            )
        },
    ),
    "aborted": Rule(
        _SINCE,
        "自第 {onset} 步起，没有回答的样本变多：可学习的样本变少",
        "",
        {
            "": (
                "看 rollout 进程的日志里什么中止了它们：超时、过长的提示（data.max_prompt_length）、工具或引擎的错误。",
                "比较 actor_rollout_ref.rollout.max_model_len 与 data.max_prompt_length + data.max_response_length。",
            )
        },
    ),
    "response_clipping": Rule(
        _SINCE,
        "自第 {onset} 步起，更多回答只因达到最大长度而结束",
        "",
        {
            "": (
                "读几条回答：若在重复，说明策略在崩溃；若推理正常却被截断，调高 data.max_response_length 和 "
                "actor_rollout_ref.rollout.max_model_len。",
                "被截断的回答没有答案，也没有奖励：考虑 reward_model.overlong_buffer 或 algorithm.filter_groups。",
            )
        },
    ),
    "grad_norm_explosion": Rule(
        _SINCE,
        "自第 {onset} 步起{phase}远大于此前，训练可能即将发散",
        "",
        {
            "critic_grad_norm": ("调低 critic.optim.lr；看 critic.grad_clip、critic.cliprange_value 和 returns。",),
            "": (
                "调低 actor_rollout_ref.actor.optim.lr；看 actor_rollout_ref.actor.grad_clip 和该步的 advantage。",
                "比较推理引擎与训练端的概率（training/rollout_probs_diff_max）：不一致则梯度有误。",
            ),
        },
    ),
    "entropy_collapse": Rule(
        "策略熵{again}崩溃：" + _SINCE.replace("{again}", ""),
        "自第 {onset} 步起策略熵下降得远快于此前",
        "",
        {
            "": (
                "读几条回答：是否都一样？若是，退回到此前的检查点。",
                "调低 actor_rollout_ref.actor.optim.lr；调高 actor_rollout_ref.actor.clip_ratio_high、"
                "actor_rollout_ref.actor.entropy_coeff 或 actor_rollout_ref.rollout.temperature。",
            )
        },
    ),
    "kl_explosion": Rule(
        _SINCE,
        "自第 {onset} 步起策略偏离参考模型的速度远快于此前",
        "",
        {
            "": (
                "退回到此前的检查点，并调低 actor_rollout_ref.actor.optim.lr，或调高 "
                "actor_rollout_ref.actor.kl_loss_coef（algorithm.kl_ctrl.kl_coef）。",
                "看该步的长度与奖励：能被钻空子的奖励会被钻空子。",
            )
        },
    ),
    "reward_collapse": Rule(
        "奖励{again}崩溃：" + _SINCE.replace("{again}", ""),
        "自第 {onset} 步起平均奖励大幅下降",
        "",
        {
            "": (
                "是奖励还是策略的问题？检查奖励服务或沙箱（超时按零计），以及从该步开始的数据。",
                "若回答也随之改变，退回到此前的检查点，并调低 actor_rollout_ref.actor.optim.lr。",
            )
        },
    ),
    "length_collapse": Rule(
        "回答{again}变短：" + _SINCE.replace("{again}", ""),
        "平均回答长度在几步之内大幅变短",
        "",
        {
            "": (
                "读几条回答：不需要推理或惩罚长度的奖励，不推理也能得到。",
                "看该步的奖励、reward_model.overlong_buffer，以及损失如何平均（actor_rollout_ref.actor.loss_agg_mode）。",
            )
        },
    ),
    "not_finite": Rule(
        "{phase}{again}在第 {onset} 步不是有限数值（nan 或 inf）",
        "{phase}中有 nan 或 inf",
        "",
        {
            "": (
                "若一直如此，停止训练：权重已损坏。退回到此前的检查点，并调低 actor_rollout_ref.actor.optim.lr 或 "
                "actor_rollout_ref.actor.grad_clip。",
                "若只有一次：verl 会跳过这次更新（0.4 起）。看是否有整批没有有效 token，或对数概率为负无穷"
                "（数据、actor_rollout_ref.rollout.top_p、top_k）。",
                "比较推理引擎与训练端的概率（training/rollout_probs_diff_max）。",
            )
        },
    ),
}
EVIDENCE = (
    (
        r"step ([0-9]+): slowest (sample|rank) (\S+) s of gen (\S+) s, mean (\S+) s",
        r"第 \1 步：最慢的 \2 为 \3 s，gen 为 \4 s，平均 \5 s",
    ),
    (r"its response has ([0-9]+) tokens, the mean one ([0-9]+)", r"其回答有 \1 个 token，平均 \2 个"),
    (r"tool calls took (\S+) s of it", r"其中工具调用用了 \1 s"),
    (r"it was preempted ([0-9]+) times", r"它被抢占了 \1 次"),
)
"""Sentences of these rules, whole."""
