//! Alipay: `sign` of the type RSA2, over the other fields of the form.
//!
//! Source: "Verification of asynchronous notifications", Alipay Open Platform.

use percent_encoding::percent_decode;

use super::rsa_sha256::PublicKey;

/// `key` is Alipay's public key, not the application's.
pub(crate) fn verify(key: &PublicKey, body: &[u8]) -> Result<(), &'static str> {
    let fields = fields(body);
    let value = |name: &[u8]| fields.iter().find(|(found, _)| found == name).map(|(_, value)| &value[..]);
    if value(b"sign_type") != Some(b"RSA2") {
        return Err("the type of the signature is not RSA2");
    }
    let signature = value(b"sign").and_then(|sign| std::str::from_utf8(sign).ok()).ok_or("no signature")?;
    if key.verifies(&signed_text(&fields), signature) { Ok(()) } else { Err("the signature does not match") }
}

type Field = (Vec<u8>, Vec<u8>);

/// The decoded fields, as bytes: a form whose `charset` is GBK is signed as GBK.
fn fields(body: &[u8]) -> Vec<Field> {
    let decoded = |text: &[u8]| {
        let blanks: Vec<u8> = text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
        percent_decode(&blanks).collect::<Vec<u8>>()
    };
    let pairs = body.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let end = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
        (decoded(&pair[..end]), decoded(pair.get(end + 1..).unwrap_or_default()))
    });
    pairs.collect()
}

/// All fields but `sign` and `sign_type`, in the order of their names, as `name=value` with `&` between them.
fn signed_text(fields: &[Field]) -> Vec<u8> {
    let mut signed: Vec<_> = fields.iter().filter(|(name, _)| name != b"sign" && name != b"sign_type").collect();
    signed.sort();
    let signed: Vec<_> = signed.iter().map(|(name, value)| [&name[..], b"=", value].concat()).collect();
    signed.join(&b'&')
}
