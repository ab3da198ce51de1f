"""Authors and titles of the papers that methods name, and where the code lies that they follow.

The keys are what a reference states: an arXiv id, an OpenReview forum, or a surname and a year. Each row was read in
the authors' repository, in a listing of arXiv, or in the references of later papers. A paper that is not here has only
what its reference states. The versions of some papers have different titles: one of them stands here.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PAPERS", "REPOSITORIES", "Paper"]


class Paper(NamedTuple):
    """What a reference does not state.

    Attributes:
      authors: full names as far as they were found, with commas; "et al." where there are more.
      title: as printed.
      place: where a paper appeared that has no arXiv id.
    """

    authors: str
    title: str
    place: str = ""


PAPERS: dict[str, Paper] = {
    "shapley1953": Paper("L. S. Shapley", "A Value for n-Person Games"),
    "williams1992": Paper(
        "Ronald J. Williams",
        "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement Learning",
        "Machine Learning 8, 229-256, doi:10.1007/BF00992696",
    ),
    "robins1994": Paper(
        "James M. Robins, Andrea Rotnitzky, Lue Ping Zhao",
        "Estimation of Regression Coefficients When Some Regressors Are Not Always Observed",
        "Journal of the American Statistical Association 89, 846-866, doi:10.1080/01621459.1994.10476818",
    ),
    "ng1999": Paper(
        "Andrew Y. Ng, Daishi Harada, Stuart J. Russell",
        "Policy Invariance under Reward Transformations: Theory and Application to Reward Shaping",
        "ICML, 278-287",
    ),
    "wolpert2002": Paper(
        "David H. Wolpert, Kagan Tumer",
        "Optimal Payoff Functions for Members of Collectives",
        "Modeling Complexity in Economic and Social Systems, World Scientific, 355-369",
    ),
    "1103.4601": Paper("Miroslav Dudík, John Langford, Lihong Li", "Doubly Robust Policy Evaluation and Learning"),
    "swaminathan2015": Paper(
        "Swaminathan, Joachims", "The Self-Normalized Estimator for Counterfactual Learning", "NeurIPS"
    ),
    "1506.02438": Paper(
        "John Schulman, Philipp Moritz, Sergey Levine, Michael Jordan, Pieter Abbeel",
        "High-Dimensional Continuous Control Using Generalized Advantage Estimation",
    ),
    "1612.01205": Paper(
        "Yu-Xiang Wang, Alekh Agarwal, Miroslav Dudík",
        "Optimal and Adaptive Off-policy Evaluation in Contextual Bandits",
    ),
    "1705.08926": Paper(
        "Jakob Foerster, Gregory Farquhar, Triantafyllos Afouras, Nantas Nardelli, Shimon Whiteson",
        "Counterfactual Multi-Agent Policy Gradients",
    ),
    "1706.05296": Paper(
        "Peter Sunehag, Guy Lever, Audrunas Gruslys, Wojciech Marian Czarnecki, Vinicius Zambaldi, Max Jaderberg, "
        "Marc Lanctot, Nicolas Sonnerat, Joel Z. Leibo, Karl Tuyls et al.",
        "Value-Decomposition Networks For Cooperative Multi-Agent Learning",
    ),
    "1803.11485": Paper(
        "Tabish Rashid, Mikayel Samvelyan, Christian Schroeder de Witt, Gregory Farquhar, Jakob Foerster, "
        "Shimon Whiteson",
        "QMIX: Monotonic Value Function Factorisation for Deep Multi-Agent Reinforcement Learning",
    ),
    "sutton2018": Paper("Richard S. Sutton, Andrew G. Barto", "Reinforcement Learning: An Introduction", "MIT Press"),
    "kool2019": Paper(
        "Wouter Kool, Herke van Hoof, Max Welling",
        "Buy 4 REINFORCE samples, get a baseline for free!",
        "ICLR Workshop on Deep Reinforcement Learning Meets Structured Prediction, OpenReview r1lgTGL5DE",
    ),
    "2011.09533": Paper(
        "Christian Schroeder de Witt, Tarun Gupta, Denys Makoviichuk, Viktor Makoviychuk, Philip H. S. Torr, "
        "Mingfei Sun, Shimon Whiteson",
        "Is Independent Learning All You Need in the StarCraft Multi-Agent Challenge?",
    ),
    "2103.01955": Paper(
        "C. Yu, A. Velu, E. Vinitsky, J. Gao, Y. Wang, A. Bayen, Y. Wu",
        "The Surprising Effectiveness of PPO in Cooperative Multi-Agent Games",
    ),
    "2310.10505": Paper(
        "Ziniu Li, Tian Xu, Yushun Zhang, Zhihang Lin, Yang Yu, Ruoyu Sun, Zhi-Quan Luo",
        "ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for Aligning Large Language Models",
    ),
    "2402.03300": Paper(
        "Zhihong Shao, Peiyi Wang, Qihao Zhu, Runxin Xu, Junxiao Song, Xiao Bi, Haowei Zhang, Mingchuan Zhang, "
        "Y. K. Li, Y. Wu, D. Guo",
        "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    ),
    "2402.14740": Paper(
        "Arash Ahmadian, Chris Cremer, Matthias Gallé, Marzieh Fadaee, Julia Kreutzer, Olivier Pietquin, Ahmet Üstün, "
        "Sara Hooker",
        "Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in LLMs",
    ),
    "2410.01679": Paper(
        "Amirhossein Kazemnejad, Milad Aghajohari, Eva Portelance, Alessandro Sordoni, Siva Reddy, Aaron Courville, "
        "Nicolas Le Roux",
        "VinePPO: Refining Credit Assignment in RL Training of LLMs",
    ),
    "2412.01928": Paper(
        "Sumeet Ramesh Motwani, Chandler Smith, Rocktim Jyoti Das, Rafael Rafailov, Ivan Laptev, Philip H. S. Torr, "
        "Fabio Pizzati, Ronald Clark, Christian Schroeder de Witt",
        "MALT: Improving Reasoning with Multi-Agent LLM Training",
    ),
    "2501.03262": Paper("Jian Hu", "REINFORCE++: A Simple and Efficient Approach for Aligning Large Language Models"),
    "2502.18439": Paper(
        "Chanwoo Park, Seungju Han, Xingzhi Guo, Asuman Ozdaglar, Kaiqing Zhang, Joo-Kyung Kim",
        "MAPoRL: Multi-Agent Post-Co-Training for Collaborative Large Language Models with Reinforcement Learning",
    ),
    "2503.14476": Paper(
        "Qiying Yu, Zheng Zhang, Ruofei Zhu, Yufeng Yuan, Xiaochen Zuo, Yu Yue, Weinan Dai, Tiantian Fan, "
        "Gaohong Liu, Lingjun Liu et al.",
        "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    ),
    "2503.19595": Paper(
        "Yunhao Tang, Kunhao Zheng, Gabriel Synnaeve, Rémi Munos",
        "Optimizing Language Models for Inference Time Objectives using Reinforcement Learning",
    ),
    "2503.20783": Paper(
        "Zichen Liu, Changyu Chen, Wenjun Li, Penghui Qi, Tianyu Pang, Chao Du, Wee Sun Lee, Min Lin",
        "Understanding R1-Zero-Like Training: A Critical Perspective",
    ),
    "2504.02546": Paper(
        "Xiangxiang Chu, Hailang Huang, Xiao Zhang, Fei Wei, Yong Wang",
        "GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning",
    ),
    "2504.16129": Paper(
        "Junwei Liao, Muning Wen, Jun Wang, Weinan Zhang", "MARFT: Multi-Agent Reinforcement Fine-Tuning"
    ),
    "2505.10978": Paper(
        "Lang Feng, Zhenghai Xue, Tingcong Liu, Bo An",
        "Group-in-Group Policy Optimization for LLM Agent Training",
    ),
    "2505.11821": Paper(
        "Siliang Zeng, Quan Wei, William Brown, Oana Frunza, Yuriy Nevmyvaka, Mingyi Hong",
        "Reinforcing Multi-Turn Reasoning in LLM Agents via Turn-Level Credit Assignment",
    ),
    "2505.19591": Paper(
        "Yufan Dang, Chen Qian, Xueheng Luo, Jingru Fan, Zihao Xie, Ruijie Shi, Weize Chen, Cheng Yang, Xiaoyin Che, "
        "Ye Tian et al.",
        "Multi-Agent Collaboration via Evolving Orchestration",
    ),
    "2505.20732": Paper(
        "Hanlin Wang, Chak Tou Leong, Jiashuo Wang, Jian Wang, Wenjie Li",
        "SPA-RL: Reinforcing LLM Agents via Stepwise Progress Attribution",
    ),
    "2505.23564": Paper(
        "Yiran Guo, Lijie Xu, Jie Liu, Dan Ye, Shuang Qiu",
        "Segment Policy Optimization: Effective Segment-Level Credit Assignment in RL for Large Language Models",
    ),
    "2505.23585": Paper(
        "Yaru Hao, Li Dong, Xun Wu, Shaohan Huang, Zewen Chi, Furu Wei",
        "On-Policy RL with Optimal Reward Baseline",
    ),
    "2506.02718": Paper(
        "Guanzhong Chen, Shaoxiong Yang, Chao Li, Wei Liu, Jian Luan, Zenglin Xu",
        "Heterogeneous Group-Based Reinforcement Learning for LLM-based Multi-Agent Systems",
    ),
    "2506.24119": Paper(
        "Bo Liu, Leon Guertler, Simon Yu, Zichen Liu, Penghui Qi, Daniel Balcells, Mickel Liu, Cheston Tan, "
        "Weiyan Shi, Min Lin, Wee Sun Lee, Natasha Jaques",
        "SPIRAL: Self-Play on Zero-Sum Games Incentivizes Reasoning via Multi-Agent Multi-Turn Reinforcement Learning",
    ),
    "2508.03680": Paper(
        "Xufang Luo, Yuge Zhang, Zhiyuan He, Zilong Wang, Siyun Zhao, Dongsheng Li, Luna K. Qiu, Yuqing Yang",
        "Agent Lightning: Train ANY AI Agents with Reinforcement Learning",
    ),
    "2508.04652": Paper(
        "Shuo Liu, Tianle Chen, Zeyu Liang, Xueguang Lyu, Christopher Amato",
        "LLM Collaboration With Multi-Agent Reinforcement Learning",
    ),
    "2509.21240": Paper(
        "Yuxiang Ji, Ziyu Ma, Yong Wang, Guanhua Chen, Xiangxiang Chu, Liaoni Wu",
        "Tree Search for LLM Agent Reinforcement Learning",
    ),
    "2510.04678": Paper(
        "Zhanfeng Mo, Xingxuan Li, Yuntao Chen, Lidong Bing", "Multi-Agent Tool-Integrated Policy Optimization"
    ),
    "2510.11062": Paper(
        "Yujie Zhao, Lanxiang Hu, Yang Wang, Minmin Hou, Hao Zhang, Ke Ding, Jishen Zhao",
        "Stronger Together: On-Policy Reinforcement Learning for Collaborative LLMs",
    ),
    "2510.11967": Paper(
        "Weiwei Sun, Miao Lu, Zhan Ling, Kang Liu, Xuesong Yao, Yiming Yang, Jiecao Chen",
        "Scaling Long-Horizon LLM Agent via Context-Folding",
    ),
    "2510.14967": Paper(
        "Guoqing Wang, Sunhao Dai, Guangze Ye, Zeyu Gan, Wei Yao, Yong Deng, Xiaofeng Wu, Zhenzhe Ying",
        "Information Gain-based Policy Optimization: A Simple and Effective Approach for Multi-Turn LLM Agents",
    ),
    "2510.15414": Paper(
        "Huining Yuan, Zelai Xu, Zheyue Tan, Xiangmin Yi, Mo Guang, Kaiwen Long, Haojia Hui, Boxun Li, Xinlei Chen, "
        "Bo Zhao, Xiao-Ping Zhang, Chao Yu, Yu Wang",
        "MARSHAL: Incentivizing Multi-Agent Reasoning via Self-Play with Strategic LLMs",
    ),
    "2511.10395": Paper(
        "Yunpeng Zhai, Shuchang Tao, Cheng Chen, Anni Zou, Ziqian Chen, Qingxu Fu, Shinji Mai, Li Yu, Jiaji Deng, "
        "Zouying Cao, Zhaoyang Liu, Bolin Ding, Jingren Zhou",
        "AgentEvolver: Towards Efficient Self-Evolving Agent System",
    ),
    "2511.11373": Paper(
        "Shulin Liu, Dong Du, Tao Yang, Yang Li, Boyu Qiu",
        "MarsRL: Advancing Multi-Agent Reasoning System via Reinforcement Learning with Agentic Pipeline Parallelism",
    ),
    "2511.13288": Paper(
        "Haoyang Hong, Jiajun Yin, Yuan Wang, Jingnan Liu, Zhe Chen, Ailing Yu, Ji Li, Zhiling Ye, Hansong Xiao, "
        "Yefei Chen, Hualei Zhou, Yun Yue, Minghui Yang, Chunxiao Guo, Junwei Liu, Peng Wei, Jinjie Gu",
        "Multi-Agent Deep Research: Training Multi-Agent Systems with M-GRPO",
    ),
    "2601.05242": Paper(
        "Shih-Yang Liu, Xin Dong, Ximing Lu, Shizhe Diao, Peter Belcak, Mingjie Liu, Min-Hung Chen, Hongxu Yin, "
        "Yu-Chiang Frank Wang, Kwang-Ting Cheng, Yejin Choi, Jan Kautz, Pavlo Molchanov",
        "GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL Optimization",
    ),
    "2602.02710": Paper(
        "Fahim Tajwar, Guanning Zeng, Yueer Zhou, Yuda Song, Daman Arora, Yiding Jiang, Jeff Schneider, "
        "Ruslan Salakhutdinov, Haiwen Feng, Andrea Zanette",
        "Maximum Likelihood Reinforcement Learning",
    ),
    "2602.04634": Paper(
        "Zelai Xu, Zhexuan Xu, Ruize Zhang, Chunyang Zhu, Shi Yu, Weilin Liu, Quanlu Zhang, Wenbo Ding, Chao Yu, "
        "Yu Wang",
        "WideSeek-R1: Exploring Width Scaling for Broad Information Seeking via Multi-Agent Reinforcement Learning",
    ),
    "2602.08335": Paper(
        "Yanming Li, Xuelin Zhang, WenJie Lu, Ziye Tang, Maodong Wu, Haotian Luo, Tongtong Wu, Zijie Peng, Hongze Mi, "
        "Yibo Feng, Naiqiang Tan, Chao Huang, Hong Chen, Li Shen",
        "Who Deserves the Reward? SHARP: Shapley Credit-based Optimization for Multi-Agent System",
    ),
    "2602.08847": Paper(
        "Lang Feng, Longtao Zheng, Shuo He, Fuxiang Zhang, Bo An",
        "Dr. MAS: Stable Reinforcement Learning for Multi-Agent LLM Systems",
    ),
    "2602.16165": Paper(
        "Jiangweizhi Peng, Yuanxin Liu, Ruida Zhou, Charles Fleming, Zhaoran Wang, Alfredo Garcia, Mingyi Hong",
        "HiPER: Hierarchical Reinforcement Learning with Explicit Credit Assignment for Large Language Model Agents",
    ),
    "2602.22817": Paper(
        "Shuo He, Lang Feng, Qi Wei, Xin Cheng, Lei Feng, Bo An",
        "Hierarchy-of-Groups Policy Optimization for Long-Horizon Agentic Tasks",
    ),
    "2603.06859": Paper(
        "Yanjun Chen, Yirong Sun, Hanlin Wang, Xinming Zhang, Xiaoyu Shen, Wenjie Li, Wei Zhang",
        "Contextual Counterfactual Credit Assignment for Multi-Agent Reinforcement Learning in LLM Collaboration",
    ),
    "2603.08754": Paper(
        "Hui-Ze Tan, Xiao-Wen Yang, Hao Chen, Jie-Jing Shao, Yi Wen, Yuteng Shen, Weihong Luo, Xiku Du, Lan-Zhe Guo, "
        "Yu-Feng Li",
        "Hindsight Credit Assignment for Long-Horizon LLM Agents",
    ),
    "2603.21563": Paper(
        "Zhongyi Li, Wan Tian, Yikun Ban, Jinju Chen, Huiming Zhang, Yang Liu, Fuzhen Zhuang",
        "Counterfactual Credit Policy Optimization for Multi-Agent Collaboration",
    ),
    "2604.00344": Paper(
        "Eric Hanchen Jiang, Levina Li, Rui Sun, Xiao Liang, Yubei Li, Yuchen Wu, Haozheng Luo, Hengli Li et al.",
        "Agent Q-Mix: Selecting the Right Action for LLM Multi-Agent Systems through Reinforcement Learning",
    ),
    "2604.00722": Paper(
        "Huaiyuan Yao, Longchao Da, Xiaoou Liu, Charles Fleming, Tianlong Chen, Hua Wei",
        "LangMARL: Natural Language Multi-Agent Reinforcement Learning",
    ),
    "2605.26646": Paper(
        "Yiqun Chen, Wei Yang, Erhan Zhang, Shijie Wang, Qi Liu, Zechun Niu, Bin Zhang, Haitao Li, Rui Li, "
        "Lingyong Yan, Jinyuan Feng, Biqing Qi, Xiaochi Wei, Yan Gao, Yi Wu, Yao Hu, Jiaxin Mao",
        "UnityMAS-O: A General RL Optimization Framework for LLM-Based Multi-Agent Systems",
    ),
    "2605.26684": Paper(
        "Xin Cheng, Shuo He, Lang Feng, HaiYang Xu, Ming Yan, Lei Feng, Bo An",
        "Beyond Trajectory-Level Attribution: Graph-Based Credit Assignment for Agentic Reinforcement Learning",
    ),
    "2606.22995": Paper(
        "Yunan Wang, Minghui Song, Zihan Zhang, Shaohan Huang, Haizhen Huang, Furu Wei, Weiwei Deng, Feng Sun, "
        "Qi Zhang",
        "Group-Graph Policy Optimization for Long-Horizon Agentic Reinforcement Learning",
    ),
    "E7jZqo0A50": Paper(
        "Kaiyan Zhang, Runze Liu, Xuekai Zhu, Kai Tian, Sihang Zeng, Guoli Jia, Yuchen Fan, Xingtai Lv, Yuxin Zuo, "
        "Che Jiang, Ziyang Liu, Jianyu Wang, Yuru Wang, Ruotong Zhao, Ermo Hua, Yibo Wang, Shijie Wang, Junqi Gao, "
        "Xinwei Long, Youbang Sun, Zhiyuan Ma, Ganqu Cui, Lei Bai, Ning Ding, Biqing Qi, Bowen Zhou",
        "MARTI: A Framework for Multi-Agent LLM Systems Reinforced Training and Inference",
    ),
}

REPOSITORIES: dict[str, str] = {
    "AgentCreditBench": "hectopascal/agent-credit-bench",
    "CoMLRL": "OpenMLRL/CoMLRL",
    "IGRPO": "e3trange/IGRPO",
    "OpenRLHF": "OpenRLHF/OpenRLHF",
    "TRL": "huggingface/trl",
    "prime-rl": "PrimeIntellect-ai/prime-rl",
    "rLLM": "rllm-org/rllm",
    "slime": "THUDM/slime",
    "verl": "verl-project/verl",
}
"""Repositories on GitHub, by the word that a reference begins with."""
