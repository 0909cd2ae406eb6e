//! What the operator of the site says to a line.

use super::*;

#[tokio::test]
async fn what_the_operator_has_said_and_done_holds_after_a_restart() {
    let app = app().await;
    let folder = tempfile::tempdir().unwrap();
    let mut params = room(app.address);
    params.waiting_room.message = "Doors open at 19:00.".to_owned();
    params.waiting_room.state_file = Some(folder.path().join("line.json"));
    params.lease.keys_file = Some(folder.path().join("lease.keys"));
    let mut first = gateway(params.clone());
    first.taken().await;
    let told = first.ask(get("/page", &[JSON])).await;
    assert_eq!(told.json()["message"], "Doors open at 19:00.");
    first.say(&LineCommand::Pause);
    first.say(&LineCommand::Say("Back at 15:10.".to_owned()));
    soon(first.stop()).await.unwrap();

    let again = gateway(params);
    let place = told.place().unwrap();
    let told_now = again.ask(get("/page", &[JSON, ("cookie", &place)])).await;
    assert_eq!(
        (&told_now.json()["message"], &told_now.json()["state"]),
        (&"Back at 15:10.".into(), &"paused".into())
    );
    assert_eq!(told_now.position(), told.position());
}
