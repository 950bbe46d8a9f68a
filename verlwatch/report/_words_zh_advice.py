"""What the core says of layout and advice, in Chinese, by its English templates."""
# ruff: noqa: RUF001 - full-width punctuation is how Chinese is written

from __future__ import annotations

from collections.abc import Mapping

LAYOUT: Mapping[str, str] = {
    "Tensor parallelism is not taken up: the mesh {mesh} ({shown}) splits each copy of the model over {split} "
    "GPU(s), and {key} is {meant}.": (
        "张量并行没有生效：mesh {mesh}（{shown}）把每份模型分到 {split} 个 GPU，而 {key} 是 {meant}。"
    ),
    "Tensor parallelism is not taken up any more: the mesh {mesh} ({shown}) splits each copy of the model over "
    "{split} GPU(s); an earlier mesh of this log had {meant}. The log shows no configuration to judge by.": (
        "张量并行不再生效：mesh {mesh}（{shown}）把每份模型分到 {split} 个 GPU；这份日志里更早的 mesh 是 {meant}。日"
        "志里没有配置可供判断。"
    ),
    "{key} = {value} stands in a block where no verl release reads it: it has no effect. It belongs to "
    "{instead}{now}.": "{key} = {value} 所在的块没有任何 verl 版本会读：它不起作用。它应当写在 {instead}{now}。",
    ", which is {value}": "（现在是 {value}）",
    "verl {release} does not read {key} = {value}{instead}.": "verl {release} 不读 {key} = {value}{instead}。",
    "; there it is {key}": "；在该版本里是 {key}",
    "{key} = {tp} does not divide the {each} GPUs of a node: copies of the model reach over nodes, or GPUs stay "
    "unused.": "{key} = {tp} 不能整除一个节点的 {each} 个 GPU：模型会跨节点，或有 GPU 闲置。",
    "{key} = {tp} is more than the {each} GPUs of a node: each token goes over the network between nodes. That is "
    "legal, and slow without a fast one.": (
        "{key} = {tp} 多于一个节点的 {each} 个 GPU：每个 token 都要经过节点间网络。这是允许的，但网络不快就会慢。"
    ),
    "{world} GPUs cannot be shared out among copies of the model that take {split} each.": (
        "{world} 个 GPU 分不成每份占 {split} 个的模型。"
    ),
    "{world} GPUs cannot be divided by {parts} of training.": "{world} 个 GPU 不能被训练的 {parts} 整除。",
    "{mini} prompts x {n} answers of a mini batch do not divide by the {dp} data-parallel ranks: {rest} samples of "
    "each are lost or spread unevenly.": (
        "一个 mini batch 的 {mini} 条提示 x {n} 个回答不能被 {dp} 个数据并行 rank 整除：每批有 {rest} 条样本丢失或分"
        "配不均。"
    ),
    "Each rank gets {per_rank} samples of a mini batch, which {key} = {micro} does not divide: the last micro batch "
    "is smaller.": (
        "每个 rank 分到 mini batch 的 {per_rank} 条样本，{key} = {micro} 不能整除：最后一个 micro batch 较小。"
    ),
    "{batch_key} = {batch} is no multiple of {mini_key} = {mini}: the last mini batch of a step is smaller.": (
        "{batch_key} = {batch} 不是 {mini_key} = {mini} 的倍数：每步最后一个 mini batch 较小。"
    ),
    "{batch} prompts x {n} answers of a step do not divide by the {dp} data-parallel ranks.": (
        "一步的 {batch} 条提示 x {n} 个回答不能被 {dp} 个数据并行 rank 整除。"
    ),
    "{into} prompts went into generation and {out} samples came out: {seen} each, and {key} is {n}.": (
        "生成输入 {into} 条提示，输出 {out} 条样本：每条 {seen} 个，而 {key} 是 {n}。"
    ),
    "{into} prompts went into generation, and {key} is {batch}: a filter, a last batch, or another trainer.": (
        "生成输入 {into} 条提示，而 {key} 是 {batch}：可能有过滤、是最后一批，或是另一个训练器。"
    ),
    "{keys} is on together with {parallel} = {size}: parameters are copied to and from the host again and again.": (
        "{keys} 与 {parallel} = {size} 同时开启：参数在主机与显存之间反复拷贝。"
    ),
    "A process prints that it offloads its {what}, and {key} is false.": (
        "有进程打印它卸载了 {what}，而 {key} 是 false。"
    ),
}
LAYOUT_MORE: Mapping[str, str] = {
    "Each rank gets {each} samples of a mini batch; near a power of two ({near}) kernels are fuller.": (
        "每个 rank 分到 mini batch 的 {each} 条样本；接近 2 的幂（{near}）时内核更满。"
    ),
    "0": "0",
    "the fastest interface between the nodes": "节点之间最快的网卡",
    "collectives then go over InfiniBand where there is any": "有 InfiniBand 时集合通信就走它",
    "collectives go over the interface that it names": "集合通信走它指定的网卡",
}
ADVICE: Mapping[str, str] = {
    "{key} = {value}: try {attempt} ({confidence})": "{key} = {value}：试 {attempt}（{confidence}）",
    "because of {finding}: {why}": "因为 {finding}：{why}",
    "proof: {proof}": "如何验证：{proof}",
    "Nothing: no finding leads to a key that this run's configuration shows.": "没有：没有发现能对应到本次配置里的键。",
    "{value}": "{value}",
    "it stands under {key}, where nothing reads it": "它写在 {key} 下，没有人会读",
    "the next log shows it in force": "下一份日志显示它已生效",
    "{sizes} (it must divide the {each} GPUs of a node)": "{sizes}（必须整除一个节点的 {each} 个 GPU）",
    "more: {value}": "加大：{value}",
    "less: {value}": "减小：{value}",
    "more seldom: {value}": "更少：{value}",
    "true": "true",
    "false": "false",
    "speculative decoding, if the model has a draft head": "投机解码（如果模型有草稿头）",
    "fewer answers, or keep them and let late ones go": "减少回答数，或保留但放弃迟到的",
    "more workers, and time-outs for tools": "更多 worker，并给工具设超时",
    "the GPUs of a node, if the model fits": "一个节点的 GPU 数（如果模型放得下）",
    "a look at whether it is taken up: one card holds what several should share": "检查它是否生效：一张卡占了该分担的",
    "to find out why it is not in force: the order of overrides, or a key in another block": (
        "查明它为何没有生效：覆盖的先后，或写在了别的块"
    ),
    "1, if the longest sequence fits": "1（如果最长的序列放得下）",
    "async, or a partial rollout": "async，或部分 rollout",
    "fewer or more GPUs for each copy of the model: less waiting for one another, or more room for the KV cache": (
        "每份模型用更少或更多 GPU：少些互相等待，或给 KV cache 更多空间"
    ),
    "{phase} per token falls in the next ten steps": "之后十步里每 token 的 {phase} 下降",
    "more sequences are decoded at once where memory allows it": "显存允许时同时解码更多序列",
    "more KV cache, so that more sequences run at once": "KV cache 更大，可同时运行更多序列",
    "CUDA graphs save the launch of each kernel": "CUDA graph 省去逐个启动内核",
    "longer prefill batches": "更长的 prefill 批次",
    "prefill does not hold up decoding": "prefill 不阻塞解码",
    "several tokens a forward pass": "一次前向得到几个 token",
    "all wait for the slowest sample": "所有人都等最慢的样本",
    "slowest ÷ mean of the samples falls": "样本的 最慢 ÷ 平均 下降",
    "the longest responses reach it: they alone set the end of generation": "最长的回复达到上限：它们决定生成何时结束",
    "short samples need not wait for the longest ones": "短样本不必等最长的",
    "gen falls, and slowest ÷ gen too": "gen 下降，最慢 ÷ gen 也下降",
    "samples wait for their tools": "样本在等工具",
    "the share of tool calls in gen falls": "工具调用在 gen 中的占比下降",
    "more KV cache": "更大的 KV cache",
    "the KV cache usage and the preemptions of the engine fall": "引擎的 KV cache 使用率与抢占下降",
    "fewer sequences share the cache": "更少的序列共用缓存",
    "the weights are spread over more GPUs, which leaves more room for the cache": (
        "权重分到更多 GPU，给缓存留出更多空间"
    ),
    "requests wait although the KV cache has room": "KV cache 有空间，请求却在等待",
    "fewer requests wait": "等待的请求变少",
    "larger batches for each forward pass": "每次前向的批次更大",
    "old_log_prob per token falls": "每 token 的 old_log_prob 下降",
    "batches filled up to a number of tokens instead of samples": "按 token 数而不是样本数装满批次",
    "parameters do not have to come back from the host for each forward pass": "不必每次前向都从主机取回参数",
    "one flat parameter a unit is gathered faster": "每个单元一个扁平参数，聚合更快",
    "ref per token falls": "每 token 的 ref 下降",
    "ref per token falls; memory of the cards rises": "每 token 的 ref 下降；显存上升",
    "larger batches for each pass where memory allows it": "显存允许时每次的批次更大",
    "update_actor per token falls": "每 token 的 update_actor 下降",
    "batches filled up to a number of tokens instead of samples: less padding": "按 token 数装满批次：填充更少",
    "more tokens for each pass where memory allows it": "显存允许时每次处理更多 token",
    "the optimizer's state stays on the card": "优化器状态留在卡上",
    "parameters are gathered within a node and not over the network": "参数在节点内聚合，不经过网络",
    "activations are not computed again, where memory allows it": "显存允许时不重算激活",
    "update_actor per token falls; memory rises": "每 token 的 update_actor 下降；显存上升",
    "rewards are computed beside the next phase": "奖励与下一阶段并行计算",
    "reward falls to nearly nothing": "reward 降到几乎为零",
    "more samples are scored at once": "同时为更多样本打分",
    "reward falls": "reward 下降",
    "fewer and larger transfers": "传输次数更少、每次更大",
    "update_weights falls": "update_weights 下降",
    "weights are gathered at once and not layer by layer, where memory allows it": "显存允许时一次聚合权重而不是逐层",
    "the shards are unequal": "分片不均",
    "the cards hold the same after the next generation": "下一次生成后各卡占用一样",
    "room until the cause is found": "找到原因之前先留出空间",
    "the engine leaves more to training": "引擎给训练留出更多",
    "the peak memory of the cards falls": "显存峰值下降",
    "the engine gives its cache back while the model is trained": "训练时引擎归还缓存",
    "the optimizer's state leaves the card between updates": "两次更新之间优化器状态离开显卡",
    "parameters leave the card while the engine generates": "引擎生成时参数离开显卡",
    "the peak memory of the cards falls; update_actor takes longer": "显存峰值下降；update_actor 变长",
    "fewer tokens for each pass": "每次处理更少 token",
    "validation takes a share of the run that is worth saving": "验证占训练的份额值得节省",
    "the GPU-hours of validation halve": "验证的 GPU 小时减半",
    "checkpoints take a share of the run that is worth saving": "检查点占训练的份额值得节省",
    "the GPU-hours of checkpoints halve": "检查点的 GPU 小时减半",
    "batches are fetched beside the step": "批次与训练步并行取得",
    "the time to fetch a batch falls": "取批次的时间下降",
    "sequence parallelism gathers parameters more often, and each time from the host": (
        "序列并行更频繁地聚合参数，每次都从主机取"
    ),
    "old_log_prob and update_actor per token fall": "每 token 的 old_log_prob 与 update_actor 下降",
    "parameters are gathered less often": "聚合参数的次数变少",
    "each copy of the model then lies within a node": "这样每份模型都在一个节点内",
    "gen per token falls": "每 token 的 gen 下降",
    "the mesh shows another size": "mesh 显示的是另一个大小",
    "the next mesh shows the size configured": "下一个 mesh 显示配置的大小",
}
