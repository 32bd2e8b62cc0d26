//! What the page says, in two languages.

use tower_idempotency::Refusal;

use crate::shop::Guard;

#[derive(Clone, Copy)]
pub(crate) enum Language {
    English,
    Chinese,
}

impl Language {
    pub(crate) const ALL: [Self; 2] = [Self::English, Self::Chinese];

    pub(crate) fn code(self) -> &'static str {
        self.words().code
    }

    pub(crate) fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Chinese => &CHINESE,
        }
    }
}

pub(crate) struct Words {
    pub(crate) code: &'static str,
    /// The attribute `lang`.
    pub(crate) tag: &'static str,
    pub(crate) title: &'static str,
    pub(crate) lead: &'static str,
    pub(crate) other_language: &'static str,
    pub(crate) other_code: &'static str,
    pub(crate) other_tag: &'static str,
    pub(crate) item: &'static str,
    /// Values and names.
    pub(crate) items: [(&'static str, &'static str); 3],
    pub(crate) amount: &'static str,
    pub(crate) submit: &'static str,
    pub(crate) sent: &'static str,
    pub(crate) orders: &'static str,
    pub(crate) wrong_amount: &'static str,
    pub(crate) again: &'static str,
    pub(crate) note: &'static str,
    guards: [Guarded; 4],
    placed: (&'static str, &'static str),
    refusals: Refusals,
}

/// What is said about one of the four.
pub(crate) struct Guarded {
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
}

struct Refusals {
    used: Told,
    same: Told,
    other: Told,
    expired: Told,
    running: Told,
    else_: Told,
}

/// A heading, and what it means for the reader.
#[derive(Clone, Copy)]
pub(crate) struct Told(pub(crate) &'static str, pub(crate) &'static str);

impl Words {
    pub(crate) fn guarded(&self, guard: Guard) -> &Guarded {
        &self.guards[guard as usize]
    }

    pub(crate) fn placed(&self, number: u32) -> String {
        format!("{}{number}{}", self.placed.0, self.placed.1)
    }

    pub(crate) fn told(&self, refusal: &Refusal) -> Told {
        match refusal {
            Refusal::TokenUsed => self.refusals.used,
            Refusal::DuplicateRequest => self.refusals.same,
            Refusal::KeyReused => self.refusals.other,
            Refusal::TokenInvalid => self.refusals.expired,
            Refusal::RequestInProgress { .. } => self.refusals.running,
            _ => self.refusals.else_,
        }
    }
}

const ENGLISH: Words = Words {
    code: "en",
    tag: "en",
    title: "One click too many",
    lead: "Four times the same order form. Double-click a button, go back and send again, open the page in three tabs: \
           see which of them orders twice.",
    other_language: "中文",
    other_code: "zh",
    other_tag: "zh-Hans",
    item: "Item",
    items: [("tea", "Tea"), ("coffee", "Coffee"), ("cocoa", "Cocoa")],
    amount: "Amount, 1 to 9",
    submit: "Order",
    sent: "Sent",
    orders: "Orders",
    wrong_amount: "Please order between 1 and 9. Nothing was ordered yet.",
    again: "Back to the four forms",
    note: "The shop takes a second for each order, so that there is time for a second click. An amount of 0 is refused, \
           and may be corrected.",
    guards: [
        Guarded { title: "Nothing", text: "Whatever arrives is an order. This is the form that orders twice." },
        Guarded {
            title: "The same content",
            text: "The same order within ten seconds is refused. It cannot tell a second click from a second wish.",
        },
        Guarded {
            title: "A token",
            text: "The page brings a token, and the first order spends it. The second one is refused.",
        },
        Guarded {
            title: "A key",
            text: "The form has a key. Sent again, it gets the first order's answer: nobody notices that it came twice.",
        },
    ],
    placed: ("Order ", " was placed."),
    refusals: Refusals {
        used: Told("This form was sent before", "Its order was placed. It was not placed once more."),
        same: Told(
            "You have just ordered the same",
            "It was not ordered once more. Wait ten seconds if you want it twice.",
        ),
        other: Told("This form was sent before, with another order", "That order was placed; this one was not."),
        expired: Told("This form is no longer good", "It was open for too long. Nothing was ordered; take a new one."),
        running: Told("Your order is on its way", "Nothing was ordered twice. Look again in a moment."),
        else_: Told("That did not work", "Nothing was ordered. Take a new form."),
    },
};

const CHINESE: Words = Words {
    code: "zh",
    tag: "zh-Hans",
    title: "多点了一下",
    lead: "同一张订单表单，四种做法。双击按钮、返回后再次提交、同时打开三个标签页：看看哪一种会重复下单。",
    other_language: "English",
    other_code: "en",
    other_tag: "en",
    item: "商品",
    items: [("tea", "茶"), ("coffee", "咖啡"), ("cocoa", "可可")],
    amount: "数量（1 到 9）",
    submit: "下单",
    sent: "提交",
    orders: "订单",
    wrong_amount: "数量请填 1 到 9。尚未下单。",
    again: "返回四张表单",
    note: "每个订单需要处理一秒钟，好让您来得及再点一次。数量填 0 会被拒绝，可以改正后再提交。",
    guards: [
        Guarded { title: "没有保护", text: "收到一次就下一单。会重复下单的就是这张表单。" },
        Guarded {
            title: "相同内容", text: "十秒之内内容相同的订单会被拒绝。它分不清是误点，还是真想再买一份。"
        },
        Guarded {
            title: "一次性令牌", text: "页面自带一个令牌，第一次下单就用掉了。第二次提交会被拒绝。"
        },
        Guarded {
            title: "幂等键", text: "表单自带一个键。重复提交会得到第一次的结果：没有人会察觉提交了两次。"
        },
    ],
    placed: ("订单 ", " 已提交。"),
    refusals: Refusals {
        used: Told("这张表单已经提交过", "订单已经成功，没有重复下单。"),
        same: Told("您刚刚下过相同的订单", "没有重复下单。若确实需要两份，请十秒后再试。"),
        other: Told("这张表单已经提交过另一份订单", "那份订单已经成功，这一份没有下单。"),
        expired: Told("这张表单已失效", "打开的时间太长。尚未下单，请使用新的表单。"),
        running: Told("订单正在处理", "没有重复下单，请稍后再看。"),
        else_: Told("没有成功", "尚未下单，请使用新的表单。"),
    },
};
