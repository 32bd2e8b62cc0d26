//! Deliveries that are genuine.

use super::{
    senders::{SENDERS, wechat_pay},
    test_shop::{TestShop, assert_done},
};

#[tokio::test]
async fn each_event_is_handled_once_however_it_is_signed_anew() {
    let shop = TestShop::new();
    for (number, sender) in SENDERS.iter().enumerate() {
        let id = format!("event_{number}");
        for (delivery, ago) in [(1, 200), (2, 60), (3, 0)] {
            let delivery = sender(&id, delivery, ago);
            assert_done(&shop.deliver(&delivery).await, delivery.path);
            assert_eq!(shop.handled().len(), 2 * number + 1, "{}", delivery.path);
        }
        let other = sender(&format!("another_{number}"), 1, 0);
        assert_done(&shop.deliver(&other).await, other.path);
        assert_eq!(shop.handled().len(), 2 * number + 2, "{}: another event", other.path);
    }
}

#[tokio::test]
async fn a_resource_of_wechat_pay_is_decrypted() {
    let shop = TestShop::new();
    shop.deliver(&wechat_pay("EV-7", 1, 0)).await;
    let handled = shop.handled();
    assert!(handled[0].starts_with("wechat pay: {") && handled[0].contains("\"order of EV-7\""), "{handled:?}");
}
